"""The configuration file of the servers: all of them have metadata and contents."""

NAME = "orangefs"  # of the file system
FILE_SYSTEM_ID = 1205346920
HANDLES = 1 << 62  # of metadata, and as many of contents after them

DEFAULTS = """\
<Defaults>
\tUnexpectedRequests 50
\tEventLogging none
\tLogStamp datetime
\tBMIModules bmi_tcp
\tFlowModules flowproto_multiqueue
\tPerfUpdateInterval 10000
\tServerJobBMITimeoutSecs 30
\tServerJobFlowTimeoutSecs 30
\tClientJobBMITimeoutSecs 60
\tClientJobFlowTimeoutSecs 60
\tClientRetryLimit 5
\tClientRetryDelayMilliSecs 200
\tPrecreateBatchSize 0,32,32,32,32,32,0
\tPrecreateLowThreshold 0,8,8,8,8,8,0
\tDataStorageSpace {base}/none
\tMetadataStorageSpace {base}/none
\tLogFile {base}/log
\t<Security>
\t\tTurnOffTimeouts yes
\t</Security>
</Defaults>
"""
SERVER = """\
<ServerOptions>
\tServer {name}
\tDataStorageSpace {base}/{name}/data
\tMetadataStorageSpace {base}/{name}/metadata
\tLogFile {base}/{name}/log
</ServerOptions>
"""
FILE_SYSTEM = """\
<FileSystem>
\tName {file_system}
\tID {id}
\tRootHandle 1048576
\tFileStuffing yes
\tDistrDirServersInitial 1
\tDistrDirServersMax 1
\tDistrDirSplitSize 100
\t<MetaHandleRanges>
{metadata}
\t</MetaHandleRanges>
\t<DataHandleRanges>
{contents}
\t</DataHandleRanges>
\t<StorageHints>
\t\tTroveSyncMeta no
\t\tTroveSyncData no
\t\tTroveMethod alt-aio
\t</StorageHints>
</FileSystem>
"""


def names(servers):
    """The servers' names in the configuration."""
    return [f"io{i}" for i in range(servers)]


def address(port):
    """The address of the server at a port, as the tools print it."""
    return f"tcp://127.0.0.1:{port}"


def ranges(servers, first):
    """Lines with equal ranges of handles from `first` on."""
    step = HANDLES // servers
    return "\n".join(f"\t\tRange {name} {first + i * step}-{first + (i + 1) * step - 1}" for i, name in enumerate(names(servers)))


def text(base, port, servers):
    """The configuration of servers at the ports from `port` on."""
    aliases = "".join(f"\tAlias {name} {address(port + i)}\n" for i, name in enumerate(names(servers)))
    parts = [DEFAULTS.format(base=base), f"<Aliases>\n{aliases}</Aliases>\n"]
    parts += [SERVER.format(base=base, name=name) for name in names(servers)]
    # Handles 0 to 2 are reserved.
    handles = {"metadata": ranges(servers, 3), "contents": ranges(servers, 3 + HANDLES)}
    return "".join(parts) + FILE_SYSTEM.format(file_system=NAME, id=FILE_SYSTEM_ID, **handles)

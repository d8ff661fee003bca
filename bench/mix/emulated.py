"""Emulated servers: each request takes the time of its server's class, whatever the page cache
has."""

import shutil

import servers


class Emulated:
    """A directory with the servers of a case, and the files."""

    where = "emulated"
    direct = False

    def __init__(self, directory, programs, case):
        self.directory, self.programs, self.case = directory.resolve(), programs, case
        self.data = self.directory / "data"
        self.empty()

    def remove(self):
        """Removes all that this case needs."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def empty(self):
        """Makes servers without any files."""
        for own in ("servers", "data"):
            shutil.rmtree(self.directory / own, ignore_errors=True)
        self.data.mkdir(parents=True)
        self.cluster = servers.write_cluster(self.directory, self.case.tiers, self.case.capacity_bytes)

    def fast(self, _fast):
        """Only processes of `stripewise run` are paced, so preparing takes no time of a server."""

    def stored(self):
        """Bytes on each server, by its name in a plan."""
        found = {}
        for tier in self.case.tiers:
            for number, directory in enumerate(servers.server_dirs(self.directory, tier)):
                files = (path for path in directory.rglob("*") if path.is_file())
                found[f"{tier.name}/{number}"] = sum(path.stat().st_size for path in files)
        return found

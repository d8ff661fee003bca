"""ceph.conf: one copy of all data, small caches, and one disk write per client write."""

TEMPLATE = """\
[global]
fsid = {fsid}
mon_host = {addresses}
mon_initial_members = a
public_addr = {address}
cluster_addr = {address}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = {base}/run
pid_file = {base}/run/$name.pid
admin_socket = {base}/run/$name.$pid.asok
log_file = {base}/log/$name.log
mon_cluster_log_file = {base}/log/cluster.log
crash_dir = {base}/crash
log_to_stderr = false
ms_bind_ipv6 = false
ms_async_op_threads = 1
ms_crc_data = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
# An OSD that could not renew its read lease for 16 s, because the machine stood still, waits for
# the OSDs of other replicas. There are none, so it would wait until `ceph osd down`.
osd_pool_default_read_lease_ratio = 50
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_warn_on_pool_no_redundancy = false
mon_max_pg_per_osd = 1000
# The free space of the machine's own disk does not matter here.
mon_data_avail_warn = 1
mon_data_avail_crit = 1
# A stopped OSD stays a member, because it has the only copy of its data.
mon_osd_down_out_interval = 0
mon_warn_on_osd_down_out_interval_zero = false

[mon]
mon_data = {base}/mon.$id
rocksdb_cache_size = 8388608
mon_memory_autotune = false
# Making a cluster takes mostly rounds of the monitor.
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
auth_allow_insecure_global_id_reclaim = true
mon_mgr_digest_period = 1

[mgr]
mgr_data = {base}/mgr.$id
# The figures of `rados df` are at most about two seconds old.
mgr_stats_period = 1
mgr_tick_period = 1

[mds]
mds_data = {base}/mds.$id
mds_cache_memory_limit = 67108864
mds_tick_interval = 0.5

[osd]
osd_data = {base}/osd.$id
osd_objectstore = bluestore
osd_class_update_on_start = false
crush_location = root=default host=bed
osd_op_num_shards = 1
osd_op_num_threads_per_shard = 4
osd_max_scrubs = 0
# Reads reach the disk, and nothing is computed over the bytes.
bluestore_default_buffered_read = false
bluestore_default_buffered_write = false
bluestore_csum_type = none
bluestore_cache_autotune = false
bluestore_cache_size = 33554432
# Large writes go to the disk at once, in one piece. By default they are cut at 64 KiB, and small
# ones are written twice.
bluestore_max_blob_size = 4194304
bluestore_max_blob_size_hdd = 4194304
bluestore_max_blob_size_ssd = 4194304
bluestore_prefer_deferred_size = 0
bluestore_prefer_deferred_size_hdd = 0
bluestore_prefer_deferred_size_ssd = 0
# The requests that an OSD has in its disk's queue. Linux limits them over all programs
# (fs.aio-max-nr); with the default, two clusters reach that limit.
bdev_aio_max_queue_depth = 256
bluestore_block_db_create = true
bluestore_block_db_size = 1073741824

[client]
# A process file would be in the way of a second client.
pid_file =
admin_socket =
keyring = /dev/null
client_mount_timeout = 30
fuse_default_permissions = false
# A client's own cache hides what layouts do, and ceph-fuse cuts requests at 128 KiB by default.
client_oc = false
fuse_max_write = 1048576
"""


def text(base, fsid, address, port):
    """The ceph.conf of a testbed in `base` with its monitor at address:port."""
    return TEMPLATE.format(base=base, fsid=fsid, address=address, addresses=monitor_addresses(address, port))


def monitor_addresses(address, port):
    """The addresses for both protocols, in Ceph's syntax."""
    return f"[v2:{address}:{port}/0,v1:{address}:{port + 1}/0]"

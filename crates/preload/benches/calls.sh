#!/bin/sh
# What the library costs per call: bare, loaded, recording, and on a managed file. Prints a table.
#   crates/preload/benches/calls.sh LIBRARY [DIRECTORY]
# DIRECTORY should be in memory (tmpfs), so that only the calls are measured.
set -e
library=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${2:-/dev/shm}/calls.XXXXXX")
trap 'rm -rf "$work"' EXIT
gcc -O2 -o "$work/calls" "$here/calls.c"
mkdir "$work/data" "$work/spool" "$work/s0" "$work/s1" "$work/s2" "$work/s3"
tier='{ startup_s = 1e-6, per_byte_s = 1e-9 }'
cat > "$work/plan.toml" <<PLAN
version = 1
scheme = "DEF"
[[rule]]
pattern = "$work/data/**"
scheme = "DEF"
reason = "a benchmark"
predicted_s = 1.0
elapsed_s = 1.0
layouts = [[{ cycle = "s/0-3:64K" }]]
[cluster.network]
establish_s = 0.0
per_byte_s = 0.0
[cluster.class.s]
read.random = $tier
read.sequential = $tier
write.random = $tier
write.sequential = $tier
[[cluster.tier]]
name = "s"
class = "s"
driver = "dirs"
servers = ["$work/s0", "$work/s1", "$work/s2", "$work/s3"]
capacity_per_server = "1G"
PLAN
echo '| ns per call | pread 4K | pwrite 4K | read 4K | write 4K | lseek | fstat | stat 4M | stat 1K | open+close |'
echo '|---|---|---|---|---|---|---|---|---|---|'
"$work/calls" "$work/plain" bare
LD_PRELOAD=$library "$work/calls" "$work/plain" loaded
LD_PRELOAD=$library STRIPEWISE_PLAN="$work/plan.toml" "$work/calls" "$work/plain" 'loaded, with a plan'
LD_PRELOAD=$library STRIPEWISE_TRACE_DIR="$work/spool" STRIPEWISE_TRACE_ONLY="$work/plain" \
    "$work/calls" "$work/plain" 'loaded and recording'
LD_PRELOAD=$library STRIPEWISE_PLAN="$work/plan.toml" "$work/calls" "$work/data/file" 'managed, 4 targets'
"$work/calls" "$work/plain" 'bare again'

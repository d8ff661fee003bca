#!/bin/sh
# What the library costs per call: bare, loaded, recording, and on a managed file. Prints a table.
#   crates/preload/benches/calls.sh LIBRARY [DIRECTORY [CALLS]]
# DIRECTORY should be in memory (tmpfs), so that only the calls are measured. CALLS: see calls.c.
set -e
library=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${2:-/dev/shm}/calls.XXXXXX")
trap 'rm -rf "$work"' EXIT
gcc -O2 -o "$work/calls" "$here/calls.c"
mkdir "$work/data" "$work/spool"
for server in s0 s1 s2 s3 c0 c1 c2 c3; do mkdir "$work/$server"; done
rule() {
    printf '[[rule]]\npattern = "%s/%s/**"\nscheme = "DEF"\nreason = "a benchmark"\n' "$work" "$1"
    printf 'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{ cycle = "s/0-3:64K" }]]\n'
    mkdir -p "$work/$1"
}
copy() { printf '[[rule.copy]]\nkind = "%s"\nname = "%s"\nlayouts = [[{ cycle = "c/0-3:64K" }]]\n' "$1" "$1"; }
cache() { printf '[rule.overlay]\nmode = "%s"\ncapacity_per_server = "%s"\n' "$1" "$2"; }
class() {
    printf '[cluster.class.%s]\n' "$1"
    for key in read.random read.sequential write.random write.sequential; do echo "$key = { startup_s = $2, per_byte_s = 1e-9 }"; done
    printf '[[cluster.tier]]\nname = "%s"\nclass = "%s"\ndriver = "dirs"\ncapacity_per_server = "1G"\n' "$1" "$1"
    printf 'servers = ["%s0", "%s1", "%s2", "%s3"]\n' "$work/$1" "$work/$1" "$work/$1" "$work/$1"
}
{
    printf 'version = 1\nscheme = "DEF"\n'
    rule data
    rule replicas; copy replica
    rule off; copy cache; cache off 1G
    rule hits; copy cache; cache nsca 1G
    # The copier leaves nothing clean to be evicted: a full cache of dirty data.
    rule misses; copy cache; cache sla 4K; echo 'background = 1'
    printf '[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n'
    class s 1e-4
    class c 1e-6
} > "$work/plan.toml"
echo '| ns per call | pread 4K | pwrite 4K | read 4K | write 4K | lseek | fstat | stat 4M | stat 1K | open+close | to write | O_CREAT | open rw+close | open rw+close 1K |'
echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
"$work/calls" "$work/plain" bare $3
LD_PRELOAD=$library "$work/calls" "$work/plain" loaded $3
LD_PRELOAD=$library STRIPEWISE_PLAN="$work/plan.toml" "$work/calls" "$work/plain" 'loaded, with a plan' $3
LD_PRELOAD=$library STRIPEWISE_TRACE_DIR="$work/spool" STRIPEWISE_TRACE_ONLY="$work/plain" \
    "$work/calls" "$work/plain" 'loaded and recording' $3
LD_PRELOAD=$library STRIPEWISE_PLAN="$work/plan.toml" "$work/calls" "$work/data/file" 'managed, 4 targets' $3
export STRIPEWISE_PLAN="$work/plan.toml"
LD_PRELOAD=$library "$work/calls" "$work/replicas/file" 'two replicas' $3
LD_PRELOAD=$library "$work/calls" "$work/off/file" 'cache, off' $3
LD_PRELOAD=$library "$work/calls" "$work/misses/file" 'cache full of dirty data' $3
LD_PRELOAD=$library "$work/calls" "$work/hits/file" 'cache, all hits' $3
unset STRIPEWISE_PLAN
"$work/calls" "$work/plain" 'bare again' $3

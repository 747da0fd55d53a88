#!/bin/sh
# run.sh - `make bench`: measure, and compare.
#
#   B=DIR EXTRA_OBJS=FILE [PEER=DIR] probes/bench/host/run.sh
#
# B and EXTRA_OBJS are for ./sonde, which builds the image that has the large text. With PEER,
# its floor/run.sh and linux/run.sh are run beside; what they print is called floor.* and
# linux.*. All output is kept in $B.
set -eu

measure() # NAME WORDS-OF-SONDE...
{
    out=$B/$1.txt
    shift
    echo "# ./sonde exec $*"
    ./sonde exec --memory 2G --timeout 1500 "$@" >"$out"
    cat "$out"
}

peer() # NAME SCRIPT WORDS...
{
    out=$B/$1.txt
    script=$PEER/$2
    shift 2
    echo "# $script $*"
    "$script" "$@" >"$out" || echo "# it failed" >&2
}

rm -f "$B"/*.txt
probes/bench/host/compare.py --host >"$B/host.txt"
measure sonde-smp --smp 2 'bench hit cache starve'
if [ -n "${PEER-}" ]; then
    peer floor-smp floor/run.sh smp
    peer linux-smp linux/run.sh smp quick
fi
measure sonde-smp4 --smp 4 'bench scale counted text'
# One instruction takes one nanosecond, and is one cycle.
measure sonde-icount --smp 1 --icount --qemu '-icount shift=0,sleep=off' 'bench hit scale'
if [ -n "${PEER-}" ]; then
    peer linux-icount linux/run.sh icount quick
fi
echo
probes/bench/host/compare.py "$B"/*.txt
probes/bench/host/page.py "$B" "$B"/*.txt

#!/bin/bash
# fresh.sh - prove the two commands on a machine that has only git, make and gcc.
#
#   tests/run/fresh.sh [run|test|labs]...      default: run test
#
# Makes a Debian of its own with debootstrap, clones this repository's last commit into
# it, and runs `echo poweroff | make run` and `make test` there, each as the first command
# in a machine of its own. Needs root and about 4 GB in $TMPDIR. Cleans up always.
set -eu

suite=bookworm
packages=git,make,gcc,ca-certificates
root=$(cd "$(dirname "$0")/../.." && pwd)

say()
{
    echo "fresh: $*"
}

if [ "$(id -u)" -ne 0 ]; then
    say "needs root: debootstrap and chroot" >&2
    exit 1
fi
"$root/kernel/host/need.sh" fresh

work=$(mktemp -d "${TMPDIR:-/tmp}/sonde-fresh.XXXXXX")

unmount()
{
    for place in dev/pts dev proc; do
        if mountpoint -q "$1/$place"; then
            umount -l "$1/$place"
        fi
    done
}

# shellcheck disable=SC2317  # called by the trap
clean_up()
{
    unmount "$work/machine"
    unmount "$work/base"
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Downloads take the way this machine's apt takes: its sources, keys and settings.
copy_apt_settings() # CHROOT
{
    rm -f "$1/etc/apt/sources.list"
    for name in sources.list sources.list.d apt.conf.d trusted.gpg trusted.gpg.d \
        keyrings preferences.d; do
        if [ -e "/etc/apt/$name" ]; then
            cp -a "/etc/apt/$name" "$1/etc/apt/"
        fi
    done
    mkdir -p "$1/usr/share/keyrings"
    cp -a /usr/share/keyrings/. "$1/usr/share/keyrings/"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    cp -L /etc/hosts "$1/etc/hosts"
}

mirror()
{
    local found
    found=$(sed -n 's/^URIs: *\(http[^ ]*debian\)\/*$/\1/p
                    s/^deb .*\(http[^ ]*debian\)\/* .*/\1/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    echo "${found:-http://deb.debian.org/debian}"
}

make_base()
{
    say "debootstrap $suite with $packages"
    debootstrap --variant=minbase --include="$packages" "$suite" "$work/base" \
        "$(mirror)" >"$work/debootstrap.log" 2>&1 || {
        tail -n 20 "$work/debootstrap.log"
        return 1
    }
    copy_apt_settings "$work/base"
    git clone -q --no-local "$root" "$work/base/root/sonde"
}

in_machine() # COMMAND: run it in a fresh copy of the base
{
    local status=0

    cp -a --reflink=auto "$work/base" "$work/machine"
    mount -t proc proc "$work/machine/proc"
    mount --rbind /dev "$work/machine/dev"
    mount --make-rslave "$work/machine/dev"
    chroot "$work/machine" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        TERM=dumb LANG=C.UTF-8 ${http_proxy+http_proxy="$http_proxy"} \
        sh -c "cd /root/sonde && $1" || status=$?
    unmount "$work/machine"
    rm -rf --one-file-system "$work/machine"
    return $status
}

failed=0
try() # NAME COMMAND
{
    say "$1: $2"
    if in_machine "$2"; then
        say "$1: passed"
    else
        say "$1: failed"
        failed=1
    fi
}

# The packages that the container file lists, in one line.
labs_packages()
{
    sed -n 's/^    \([a-z].*\) \\$/\1/p' "$root/docs/labs/Containerfile" | tr '\n' ' '
}

# A lab on this processor, and a lab in a guest.
labs_commands()
{
    echo "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y" \
        "--no-install-recommends $(labs_packages) >/dev/null &&" \
        "./sonde grade 3 docs/labs/host/int3/solution &&" \
        "./sonde grade 2 docs/labs/host/handler/solution"
}

[ $# -gt 0 ] || set -- run test
make_base
for what; do
    case $what in
    run) try "make run" "echo poweroff | make run" ;;
    test) try "make test" "make test" ;;
    labs) try "labs" "$(labs_commands)" ;;
    *) say "no such thing: $what" && exit 2 ;;
    esac
done
exit $failed

#!/bin/sh
# need.sh - make sure the tools of the named groups are there; install what is missing.
#
#   kernel/host/need.sh GROUP...     groups: build iso qemu run uefi gdb suite record web text
#                                  labs test tools fresh fuse plot peer
#
# Silent and quick when nothing is missing. Otherwise says what it installs, then
# installs it with apt-get, through sudo when not root. Where there is no apt-get it
# names the packages and fails. All output goes to stderr.
set -u

# group, what must exist (a command, or a file pattern), the Debian package it is in
table='build  nasm                                     nasm
build  gcc                                      gcc
build  ld                                       binutils
build  python3                                  python3
iso    grub-mkrescue                            grub-common
iso    /usr/lib/grub/i386-pc/moddep.lst         grub-pc-bin
iso    xorriso                                  xorriso
iso    mformat                                  mtools
qemu   qemu-system-x86_64                       qemu-system-x86
uefi   /usr/lib/grub/x86_64-efi/moddep.lst      grub-efi-amd64-bin
uefi   /usr/share/OVMF/OVMF_CODE_4M.fd          ovmf
gdb    gdb                                      gdb
suite  runtest                                  dejagnu
suite  gdbserver                                gdbserver
suite  /usr/src/gdb.tar.xz                      gdb-source
peer   gdbserver                                gdbserver
peer   uftrace                                  uftrace
record qemu-img                                 qemu-utils
fuse   /usr/lib/python3/dist-packages/fusepy.py python3-fusepy
fuse   fusermount                               fuse3
fuse   objcopy                                  binutils
fuse   unshare                                  util-linux
test   prove                                    perl
test   /usr/include/stdio.h                     libc6-dev
test   clang                                    clang
test   /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.a  libclang-rt-CLANG-dev
test   clang-format                             clang-format
test   clang-tidy                               clang-tidy
test   /usr/include/Zydis/Zydis.h               libzydis-dev
test   shellcheck                               shellcheck
test   black                                    black
test   flake8                                   flake8
test   /usr/lib/python3/dist-packages/pytest    python3-pytest
test   /usr/lib/python3/dist-packages/pip       python3-pip
test   spin                                     spin
test   qemu-img                                 qemu-utils
text   lowdown                                  lowdown
labs   spin                                     spin
labs   git                                      git
labs   /usr/lib/*/libseccomp.so.2               libseccomp2
labs   /usr/include/stdio.h                     libc6-dev
tools  bochs                                    bochs
tools  /usr/lib/*/bochs/plugins/libbx_term_gui.so  bochs-term
tools  /usr/share/bochs/BIOS-bochs-latest       bochsbios
tools  /usr/share/vgabios/vgabios.bin           vgabios
tools  trace-cmd                                trace-cmd
tools  /usr/lib/*/libkshark.so.2                libkshark2
tools  perf                                     linux-perf
tools  protoc                                   protobuf-compiler
tools  chromium                                 chromium
tools  npm                                      npm
tools  node                                     nodejs
tools  wasm-ld                                  lld
tools  lldb                                     lldb
tools  websockify                               websockify
web    websockify                               websockify
web    npm                                      npm
plot   /usr/lib/python3/dist-packages/matplotlib  python3-matplotlib
fresh  debootstrap                              debootstrap'

say()
{
    echo "sonde: $*" >&2
}

is_there() # COMMAND or FILE-PATTERN
{
    case $1 in
    /*)
        # shellcheck disable=SC2086  # a pattern: it is meant to expand
        set -- $1
        [ -e "$1" ]
        ;;
    *)
        command -v "$1" >/dev/null
        ;;
    esac
}

# The package of clang's runtime carries the version of the distribution's clang.
clang_version()
{
    apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p'
}

missing_packages() # GROUPS, blank before and after each
{
    while read -r group what package; do
        case $1 in
        *" $group "*) is_there "$what" || printf '%s ' "$package" ;;
        esac
    done <<ROWS
$table
ROWS
}

# apt-get is asked twice when the lists on this machine are missing or too old.
install_packages()
{
    quiet="-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300"
    # shellcheck disable=SC2086  # words, all of them
    if ! $sudo apt-get -qq -s install --no-install-recommends "$@" >/dev/null 2>&1; then
        $sudo apt-get $quiet update
    fi
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get $quiet install -y --no-install-recommends "$@" && return
    # shellcheck disable=SC2086
    $sudo apt-get $quiet update && $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get $quiet install -y --no-install-recommends "$@"
}

groups=" $* "
case $groups in
*" run "*) groups=" build iso qemu$groups" ;;
esac
packages=$(missing_packages "$groups")
[ -n "$packages" ] || exit 0
packages=${packages% }

sudo=
if [ "$(id -u)" -ne 0 ]; then
    sudo=sudo
fi
if ! command -v apt-get >/dev/null || ! command -v ${sudo:-env} >/dev/null; then
    say "please install, by Debian's package names: $(echo "$packages" | sed 's/-CLANG-/-/')"
    exit 1
fi
case $packages in
*-CLANG-*)
    version=$(clang_version)
    packages=$(echo "$packages" | sed "s/-CLANG-/-${version:-14}-/")
    ;;
esac
say "installing $packages (apt-get install --no-install-recommends${sudo:+, through sudo})"
# shellcheck disable=SC2086
if ! install_packages $packages >&2; then
    say "could not install: $packages"
    exit 1
fi

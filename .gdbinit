# .gdbinit - loaded by `./sonde gdb`, in the root of the tree.
set confirm off
set disassemble-next-line auto
set print pretty on
# Never `set architecture`: QEMU's register packet is the 64-bit one in every mode.
source -s kernel/host/gdb/kprobes.py

#!/usr/bin/env python3
"""extract_vmlinux.py - write the ELF image that is inside a compressed Linux kernel.

    tests/insn/extract_vmlinux.py /boot/vmlinuz-VERSION OUTPUT

The setup header of a bzImage says where the compressed payload is (Linux/x86 boot
protocol 2.08, fields setup_sects, payload_offset and payload_length).
"""

import lzma
import struct
import subprocess
import sys
import zlib

SETUP_SECTS = 0x1F1
HEADER_MAGIC = 0x202
PAYLOAD = 0x248
SECTOR = 512


def payload(image):
    """The compressed payload of the bzImage @image."""
    if image[HEADER_MAGIC : HEADER_MAGIC + 4] != b"HdrS":
        sys.exit("extract_vmlinux: this is no bzImage")
    setup = (image[SETUP_SECTS] or 4) + 1
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    start = setup * SECTOR + offset
    return image[start : start + length]


def unpack(data):
    """The payload @data, decompressed. Its first bytes tell the kind of compression."""
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # The last four bytes are the length; zstd would refuse them.
        run = subprocess.run(["zstd", "-dcq"], input=data[:-4], stdout=subprocess.PIPE)
        return run.stdout
    sys.exit("extract_vmlinux: unknown compression " + data[:6].hex(" "))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as source:
        image = unpack(payload(source.read()))
    if not image.startswith(b"\x7fELF"):
        sys.exit("extract_vmlinux: the payload is no ELF file")
    with open(sys.argv[2], "wb") as out:
        out.write(image)


main()

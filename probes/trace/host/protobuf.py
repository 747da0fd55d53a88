"""protobuf.py - writes fields of protocol buffers, which are given by their numbers."""

import struct

VARINT, FIXED64, BYTES = 0, 1, 2


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3 | VARINT) + varint(value)


def fixed64(field, value):
    return varint(field << 3 | FIXED64) + struct.pack("<Q", value)


def content(field, value):
    """Write a field that is a string, bytes, or a message that is written already."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(data)) + data

/* insn_hex.h - makes instructions from hex bytes, for tests on the host. */
#pragma once

#include "probes/insn/insn.h"

#include <stdint.h>
#include <stdlib.h>

#define HEX_ADDR UINT64_C(0xffffffff80100000)

/* hex_bytes - convert @hex, as "0f 1f 00", to bytes in @out, which has room for 32.
 * Return: the number of bytes.
 */
static inline size_t hex_bytes(uint8_t *out, const char *hex)
{
    size_t len = 0;
    char *end;

    for (const char *p = hex; len < 32; p = end) {
        unsigned long byte = strtoul(p, &end, 16);

        if (end == p)
            break;
        out[len++] = (uint8_t)byte;
    }
    return len;
}

/* hex_decode_at - decode the bytes @hex as an instruction at @addr. The bytes are in a
 * block of exactly their size, so that the sanitizer catches a read behind them.
 * Return: as insn_decode().
 */
static inline int hex_decode_at(struct insn *insn, const char *hex, uintptr_t addr)
{
    uint8_t bytes[32];
    size_t len = hex_bytes(bytes, hex);
    uint8_t *exact = malloc(len ? len : 1);
    int err;

    for (size_t i = 0; i < len; i++)
        exact[i] = bytes[i];
    err = insn_decode(insn, exact, len, addr);
    free(exact);
    return err;
}

/* hex_insn - decode the bytes @hex at HEX_ADDR. Return: of length 0 if this fails. */
static inline struct insn hex_insn(const char *hex)
{
    struct insn insn;

    if (hex_decode_at(&insn, hex, HEX_ADDR))
        insn = (struct insn){ .len = 0 };
    return insn;
}

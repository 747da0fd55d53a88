/* insn_hex.h - instructions for tests, written as hex bytes. Host only. */
#pragma once

#include "probes/insn/insn.h"

#include <stdint.h>
#include <stdlib.h>

#define HEX_ADDR UINT64_C(0xffffffff80100000)

/* hex_bytes - "0f 1f 00" into @out (32 bytes). Return: how many. */
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

/* hex_decode_at - what insn_decode says about exactly these bytes. They are put in an
 * allocation of just their size, so that reading on is caught.
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

/* hex_insn - these bytes at HEX_ADDR, decoded; of length 0 if they do not. */
static inline struct insn hex_insn(const char *hex)
{
    struct insn insn;

    if (hex_decode_at(&insn, hex, HEX_ADDR))
        insn = (struct insn){ .len = 0 };
    return insn;
}

/* ksyms_table.h - describes the symbol table in the image, as kernel/debug/gen_ksyms.py
 * writes it.
 *
 *   ksyms_table    one entry for each symbol, by address
 *   ksyms_by_name  the indices of the same entries, by name (bytes compared as unsigned,
 *                  shorter first), equal names by address
 *   ksyms_total    how many entries
 *   ksyms_names    the names, each once, each with its NUL
 *
 * The tables are in section .ksyms, which is never written. Of the symbols that start at
 * one address, the outermost comes first: so the last one describes that address best.
 */
#pragma once

#include <stdint.h>

#define KSYMS_NONE UINT32_MAX

struct ksyms_entry {
    uint64_t start;
    uint32_t size;  /* bytes; of an assembler label, which has none, the distance to the
                     * next symbol, or 0 when the label is inside another symbol */
    uint32_t name;  /* offset in ksyms_names */
    uint32_t outer; /* index of the innermost symbol around the start; KSYMS_NONE */
    char type; /* T D B R: text, data, zeroed data, read-only; lower case when local */
    char unused[3];
};

_Static_assert(sizeof(struct ksyms_entry) == 24, "gen_ksyms.py writes 24 bytes");

extern const struct ksyms_entry ksyms_table[];
extern const uint32_t ksyms_by_name[];
extern const uint32_t ksyms_total;
extern const char ksyms_names[];

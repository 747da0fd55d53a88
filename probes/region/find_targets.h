/* find_targets.h - find targets: addresses at which CPUs enter a text in another way than
 * from the instruction in front.
 *
 * The build calls this for the image (gen_targets.py), the kernel for a module that is
 * loaded (probes/port/port_module.c). So the same rules hold for both, and for code that
 * any compiler or assembler has made. Targets are:
 *
 *   - the targets of all direct branches and calls, also of code that only a branch leads to
 *   - all addresses of the text that the linker has written into code or data: jump tables,
 *     computed gotos, handlers, fix-ups. The decoder finds the relative ones in code
 *   - symbols
 *
 * An address that code computes from another address is not among these. So a function is
 * opaque as a whole, which means that CPUs may enter it anywhere, if it may compute
 * addresses:
 *
 *   - Its code, or that of another function of its family, takes an address in the text: by
 *     an operand, a number, or a call to the next instruction. The entry of another function
 *     does not count in code that a compiler has made, which uses it as it is.
 *   - It jumps indirectly, or the function with that address does. In a function that no
 *     compiler has made, a RET and an indirect call count as such jumps, too.
 *
 * Then both functions are opaque. These are opaque, too: data in text; functions with bytes
 * that do not decode; and the targets of a difference of two addresses in data, because the
 * linker knows only one of the two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code goes to an address that it has computed. */
enum target_way { TARGET_BY_NONE, TARGET_BY_RET, TARGET_BY_JUMP };

/* A symbol in the text, or the bytes between two symbols. */
struct target_span {
    uintptr_t start, end; /* a symbol of no size is a target, and otherwise ignored */
    uint32_t family;      /* target_family() of its name */
    bool is_compiled;     /* a compiler has made the function */
    bool is_data;

    /* Found by targets_search(): */
    uintptr_t reach;         /* the highest end of this span and those before it */
    uint8_t way, family_way; /* enum target_way: to computed addresses */
    bool computes;           /* addresses, perhaps */
    bool is_opaque;
};

struct target_pointer {
    uintptr_t place, to;
};

struct target_search {
    const uint8_t *bytes; /* the text */
    uintptr_t addr;       /* where it runs */
    size_t size;

    /* The symbols, in any order. There must be room for 2 * span_count + 1. */
    struct target_span *spans;
    size_t span_count;

    /* Addresses that the linker has written: absolute ones into code, absolute ones and
     * those of fix-ups into data, and other relative ones into data, in any order.
     */
    const struct target_pointer *in_code, *in_data;
    struct target_pointer *differences;
    size_t in_code_count, in_data_count, difference_count;

    uint8_t *marks;    /* @size zeroes; receives enum target_mark for each byte */
    uint32_t *pending; /* memory for @size entries */
    size_t pending_count;
};

enum target_mark {
    TARGET_TRIED = 1,   /* decoding was tried there */
    TARGET_DECODED = 2, /* an instruction begins there */
    TARGET_PENDING = 4, /* a branch leads there, so it will be decoded */
    TARGET_HERE = 8,    /* the result: a target */
    TARGET_OPAQUE = 16, /* the result: CPUs may enter there in unknown ways */
};

/* targets_search - fill in s->marks. Context: any. */
void targets_search(struct target_search *s);

/* target_family - a number for the part of @name that a function has in common with its
 * cold part: retry and retry.cold. Two names may have the same number by chance; then more
 * code is opaque. Context: any.
 */
uint32_t target_family(const char *name);

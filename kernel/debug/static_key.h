/* static_key.h - implements a condition that seldom changes as a NOP that becomes a jump.
 *
 *     STATIC_KEY(careful);
 *     if (static_key_is_on(&careful))
 *         look_twice();
 *
 * A condition that is off costs a NOP of five bytes; a condition that is on costs a jump.
 * The kernel only tests keys; probes/marker/static_key.h switches them.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* The address of the struct identifies the key. */
struct static_key {
    bool is_on; /* written under the lock of probes/marker/static_key.c */
};

#define STATIC_KEY(name) struct static_key name = { false }

/* A place where a key is tested. */
struct static_key_insn {
    uintptr_t insn; /* the NOP, or the jump to @target */
    uintptr_t target;
    struct static_key *key;
};

/* static_key_is_on - is @key on? @key must be a constant address. Context: any. */
static ALWAYS_INLINE bool static_key_is_on(struct static_key *const key)
{
    __asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
                 ".pushsection .static_keys, \"a\"\n\t"
                 ".balign 8\n\t"
                 ".quad 1b, %l[yes], %c0\n\t"
                 ".popsection"
                 :
                 : "i"(key)
                 :
                 : yes);
    return false;
yes:
    return true;
}

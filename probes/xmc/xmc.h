/* xmc.h - cross-modification: replace instructions that CPUs may be executing, for good or
 * until they are replaced again.
 *
 *     before   [ a          ]       [ a ][ b ][ c ]
 *     after    [ x          ]       [ x           ]       one for one, one for several
 *              [ x ][ y ][ z]       [ jmp  ] ....         or several that fill its bytes
 *
 * Probes change text only as long as they are armed. This is for other parts of the kernel,
 * which change text and leave it changed.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xmc_mode {
    /* An int3 is written first. A CPU that traps during the change runs the new
     * instruction, or the old one if there are several new ones.
     */
    XMC_INT3,
    /* A single aligned store of 1, 2, 4 or 8 bytes, without a trap. No manual promises that a
     * CPU which fetches the bytes meanwhile gets all old or all new ones.
     */
    XMC_STORE,
};

/* xmc - exchange the instructions in [@addr, @addr + @len) for new ones of the same
 * length. On return every CPU executes the new ones.
 * @bytes: whole instructions, encoded for the address @addr
 * @len:   1..15; @addr + @len must be the end of an old instruction
 *
 * docs/text-poke.md tells which instructions may be exchanged for which, what becomes of
 * their probes, and what is refused.
 *
 * CAVEAT: other data about the text does not change with the text: listings, tables for
 *         backtraces, fix-ups.
 *
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EDEADLK from a handler; -EINVAL no such length; -ENOENT not kernel text;
 *          -EPERM, -EILSEQ, -EOPNOTSUPP, -EBUSY as for a probe; -EEXIST probes are in the
 *          way; -ENOMEM, -ERANGE no copy could be made.
 * Source:  as text_poke_batch().
 */
int xmc(uintptr_t addr, const uint8_t *bytes, size_t len);
/* xmc_why - do the same as xmc(), in the mode @mode; xmc() uses XMC_INT3. On refusal @why
 * tells which rule was broken, and where.
 */
int xmc_why(uintptr_t addr, const uint8_t *bytes, size_t len, enum xmc_mode mode,
            struct probe_reject *why);

/* One exchange of a batch. */
struct xmc_change {
    uintptr_t addr;
    const uint8_t *bytes; /* @len of them */
    size_t len;
};

/* xmc_batch - make all @changes or none of them. The batch needs no more synchronisations
 * of the CPUs, and no longer waiting, than a single change.
 * @changes: sorted by address, not overlapping
 * @why:     on refusal: which rule, and where
 *
 * Context, Locks: as xmc().  Return: as xmc(); the errno is that of the first refused
 * change.
 */
int xmc_batch(const struct xmc_change *changes, size_t count, struct probe_reject *why);

/* xmc_is_inside - are several instructions being exchanged, and does @ip lie in them,
 * behind their first byte? While the platform waits for quiescence, it calls this
 * function for each thread, and waits for the threads that would go on there.
 * Context: any.
 */
bool xmc_is_inside(uintptr_t ip);

/* xmc.h - cross-modification: replace instructions that CPUs may be executing, for good or
 * until they are replaced again.
 *
 *     before   [ a          ]       [ a ][ b ][ c ]
 *     after    [ x          ]       [ x           ]       one for one, one for several
 *              [ x ][ y ][ z]       [ jmp  ] ....         or several that fill its bytes
 *
 * The changes that probes make to text come and go with them; this is for lasting changes
 * by other parts of the kernel.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xmc_mode {
    /* Int3 first. A CPU that traps meanwhile runs the new instruction, or the old one where
     * there are several new. No CPU has to come by the place, and none is waited for longer
     * than an interrupt takes.
     */
    XMC_INT3,
    /* The limited one: a single store of 1, 2, 4 or 8 bytes at a multiple of as many, then
     * all CPUs are synchronised. No trap, no memory; but no manual promises that a CPU that
     * fetches the bytes meanwhile sees either all or none of them change.
     */
    XMC_STORE,
};

/* xmc - exchange the instructions in [@addr, @addr + @len) for others of the same length. On
 * return every CPU executes the new ones.
 * @bytes: whole instructions, decoded where they will lie
 * @len:   1..15, the end of an instruction; of several, XMC_INT3 only
 *
 * One instruction may be exchanged for any that fill its bytes. Several may be exchanged
 * for one, or for one that ends the flow and anything behind it; nothing may lead into
 * their middle, and threads that are there are waited for.
 *
 * An instruction that could not carry a probe is not exchanged. Where one instruction with
 * probes becomes one that can carry them, they stay, armed or not: a hit runs the new one.
 * Jumps that are made of the bytes are planned again. Refused are, beside XMC_STORE under any
 * probe, several instructions with a probe among them, STI, and the instruction behind an STI
 * with a probe, whose copy is that of both. The targets of the new ones, branches and
 * addresses they take, are made known to the planner of regions, and forgotten when the new
 * ones are exchanged again.
 *
 * CAVEAT: what is built upon text is not told of it: listings, backtraces by table, fix-ups.
 *
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EDEADLK from a handler; -EINVAL no such length; -ENOENT not kernel text;
 *          -EPERM, -EILSEQ, -EOPNOTSUPP, -EBUSY as for a probe; -EEXIST probes are in the
 *          way; -ENOMEM, -ERANGE no copy could be made.
 * Source:  as text_poke_batch().
 */
int xmc(uintptr_t addr, const uint8_t *bytes, size_t len);
/* xmc_why - the same in either mode; on refusal @why tells which rule, and where. */
int xmc_why(uintptr_t addr, const uint8_t *bytes, size_t len, enum xmc_mode mode,
            struct probe_reject *why);

/* One of several exchanges. */
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

/* xmc_is_inside - several instructions are being exchanged: does @ip lie behind the first
 * byte of them? While the platform waits for quiescence it asks this, and waits for each
 * thread that would go on there. Context: any.
 */
bool xmc_is_inside(uintptr_t ip);

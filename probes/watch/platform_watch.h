/* platform_watch.h - the functions of the platform that only watches need;
 * probes/core/platform.h has the others.
 *
 * The kernel implements these functions in probes/port/port_watch.c, the unit tests in
 * tests/unit/fake_watch.c.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* plat_watch_take - take a free debug register, under the name @owner.
 * Return: its number, 0..3; -EBUSY: all are taken.
 * plat_watch_give - give register @reg back. No CPU watches anything with it any more.
 * plat_watch_owner - return the name under which register @reg was taken; NULL: it is
 * free. Context: any.
 */
int plat_watch_take(const char *owner);
void plat_watch_give(unsigned reg);
const char *plat_watch_owner(unsigned reg);

/* plat_watch_set - let register @reg watch @len bytes at @addr. On return all CPUs do so.
 * @addr: 0: watch nothing
 * @kind: enum watch_kind
 * Context: thread.
 * plat_watch_move - let register @reg watch another address, with the same kind and
 * length. The executing CPU does so at once, the other CPUs soon. Context: any.
 * plat_watch_addr - return the address that register @reg is to watch. Context: any.
 */
void plat_watch_set(unsigned reg, uintptr_t addr, unsigned kind, size_t len);
void plat_watch_move(unsigned reg, uintptr_t addr);
uintptr_t plat_watch_addr(unsigned reg);

/* plat_watch_bits - tell from @dr6 which registers were hit, without registers that are
 * not in use. Return: bit i is set: register i was hit.
 * plat_watch_is_inner - did this #DB come in the entry code of another #DB? Then the
 *                       handling of the other #DB handles all hits.
 * plat_watch_tell - let the other owners of registers handle the hits of their registers,
 *                   which are in @bits. @miss: not now; only let the CPU go on
 * plat_watch_rest - the CPU is in an NMI: let the registers in @bits watch nothing on
 *                   this CPU until the NMI ends. Context: trap.
 */
unsigned plat_watch_bits(unsigned long dr6);
bool plat_watch_is_inner(const struct pt_regs *regs);
void plat_watch_tell(struct pt_regs *regs, unsigned bits, bool miss);
void plat_watch_rest(unsigned bits);

/* plat_watch_is_own - does each hit touch some of these bytes on its way, while
 * watch_busy is not set? Such bytes cannot be watched. Context: any.
 */
bool plat_watch_is_own(uintptr_t addr, size_t len);
/* plat_watch_is_kernel - does @addr lie in the kernel's half of memory? Context: any. */
bool plat_watch_is_kernel(uintptr_t addr);
/* plat_watch_ip - return the address in the program at which @regs was interrupted, also
 * if regs->ip lies in a copy of an instruction; 0: in code that leads to handlers without a
 * trap, or from there to such a copy. Context: any.
 */
uintptr_t plat_watch_ip(const struct pt_regs *regs);

/* plat_watch_execute - a debug register has begun to stop CPUs at the instruction at @addr:
 * no other code may stand in for it, CPUs must come to @addr itself.
 * @addr: 0: a register no longer stops CPUs at an instruction, which may be copied again
 * Context: thread or held. In `held` the lock is free.  Locks: PLAT_PROBES held.
 */
void plat_watch_execute(uintptr_t addr);

/* platform_watch.h - what watches ask of the machine beside probes/core/platform.h.
 *
 * The kernel has it in probes/port/port_watch.c, the unit tests in tests/unit/fake_watch.c.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* plat_watch_take - a debug register, in the name of @owner. Return: 0..3; -EBUSY.
 * plat_watch_give - nothing is in it any more.
 * plat_watch_owner - NULL: it is free.
 * Context: any.
 */
int plat_watch_take(const char *owner);
void plat_watch_give(unsigned reg);
const char *plat_watch_owner(unsigned reg);

/* plat_watch_set - on return all CPUs watch that; @addr 0: nothing.
 * @kind: enum watch_kind
 * Context: thread.
 * plat_watch_move - this CPU at once, the others soon. Context: any.
 * plat_watch_addr - where it is to be. Context: any.
 */
void plat_watch_set(unsigned reg, uintptr_t addr, unsigned kind, size_t len);
void plat_watch_move(unsigned reg, uintptr_t addr);
uintptr_t plat_watch_addr(unsigned reg);

/* plat_watch_bits - of the bits in @dr6 those of registers that are in use.
 * plat_watch_is_inner - is this #DB one inside the entry of another, which tells all?
 * plat_watch_is_stray - may a #DB without any cause be one that a hit in the entry code has
 *                       dealt with?
 * plat_watch_rest - let these registers rest on this CPU until the NMI that it is in ends.
 * Context: trap.
 */
unsigned plat_watch_bits(unsigned long dr6);
bool plat_watch_is_inner(const struct pt_regs *regs);
bool plat_watch_is_stray(void);
void plat_watch_rest(unsigned bits);

/* plat_watch_is_own - does the way to a hit touch these bytes? Context: any. */
bool plat_watch_is_own(uintptr_t addr, size_t len);
/* plat_watch_is_kernel - is it an address of the kernel's half? Context: any. */
bool plat_watch_is_kernel(uintptr_t addr);
/* plat_watch_ip - where the program is that was interrupted at @regs. Context: any. */
uintptr_t plat_watch_ip(const struct pt_regs *regs);

/* plat_watch_execute - the instruction at @addr is watched, or no longer: CPUs must come to
 * it by its own address, not by way of copies.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int plat_watch_execute(uintptr_t addr, bool on);

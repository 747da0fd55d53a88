/* debug_reg.h - DR0 to DR3: which part of the kernel has them, and what is in them; the same
 * on all CPUs.
 *
 * A register is taken by an owner with a name, put to use, and given back. One table says
 * what the registers are to hold. Each CPU loads them from it when it starts, and when
 * it is asked to; so a CPU that comes later has what the others have.
 *
 *     i = debug_reg_take("gdb");                          -EBUSY: all are taken, see owner
 *     debug_reg_put(i, addr, DEBUG_REG_WRITE, 4);         in the table
 *     debug_regs_load_all();                              thread: now every CPU watches
 *     ...
 *     debug_reg_move(i, 0);
 *     debug_regs_load_all();                              no CPU watches any more
 *     debug_reg_give(i);
 *
 * What a register does is reported by #DB, as bits 0 to 3 of DR6. The entry has cleared DR6;
 * debug_reg_hits() says which of these bits mean something. Probes take those of their own
 * registers out of regs->dr6 before other handlers of TRAP_DB are asked.
 *
 * Source: SDM vol. 3B, "Debug Registers".
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_REGS 4

/* What DR7 calls them. There is none for reads alone, and I/O ports are not offered. */
enum debug_reg_kind {
    DEBUG_REG_EXECUTE = 0, /* before the instruction; length 1 */
    DEBUG_REG_WRITE = 1,   /* after it */
    DEBUG_REG_ACCESS = 3,  /* after it; reads and writes */
};

#define DEBUG_REG_OWNER_MAX 64 /* bytes of a name, NUL included */

/* debug_reg_take - Return: 0..DEBUG_REGS-1; -EBUSY all are taken.
 * @owner: is copied, and cut where it is too long
 * debug_reg_give - @i has been taken, and no CPU has anything in it.
 * Context: any, but from one CPU at a time for the same register.
 */
int debug_reg_take(const char *owner);
void debug_reg_give(unsigned i);
/* debug_reg_owner - NULL: it is free. Context: any. */
const char *debug_reg_owner(unsigned i);

/* debug_reg_put - what @i is to watch, in the table.
 * @addr: a multiple of @len; 0: nothing yet
 * @len:  1, 2, 4 or 8 bytes
 * debug_reg_move - the same kind and length at another address, or at none: 0.
 * debug_reg_addr - where that is.
 * Context: any. Of two CPUs that do so at once, one is the last.
 */
void debug_reg_put(unsigned i, uintptr_t addr, enum debug_reg_kind kind, size_t len);
void debug_reg_move(unsigned i, uintptr_t addr);
uintptr_t debug_reg_addr(unsigned i);

/* debug_regs_load - let the executing CPU have what the table says.
 * debug_regs_load_soon - the executing CPU at once, the others as soon as they take an
 *                        interrupt; debug_reg_hits() does not count what they still have.
 * Context: any.
 * debug_regs_load_all - all CPUs, on return. Context: thread, as smp_call_all().
 */
void debug_regs_load(void);
void debug_regs_load_soon(void);
void debug_regs_load_all(void);

/* debug_reg_hits - the registers that have been hit: of the bits in @dr6 those of registers
 * in use on this CPU, as the table has them now. The processor sets others, too.
 * debug_regs_in_use - has this CPU anything in its registers?
 * Context: trap.
 */
unsigned debug_reg_hits(unsigned long dr6);
bool debug_regs_in_use(void);

/* debug_regs_at_entry - has #DB interrupted the entry of another #DB, which has not taken DR6
 * yet, or has not cleared it? Then that trap tells all there is, and this one is over.
 * Context: trap.
 */
bool debug_regs_at_entry(const struct pt_regs *regs);

/* debug_regs_rest - inside an NMI an instruction that a register of @bits watches could not
 * be passed: only IRET loads the flag that lets it pass once (RF), and would let the next NMI
 * in. So these registers rest on this CPU until the NMI ends.
 * debug_regs_wake - it ends; entry.asm calls this where a register rests.
 * Context: trap; nmi.
 */
void debug_regs_rest(unsigned bits);
void debug_regs_wake(void);

/* debug_reg_is_own - would the handling of each hit of a register that watches @len bytes at
 * @addr hit it again, for ever? Context: any.
 */
bool debug_reg_is_own(uintptr_t addr, size_t len);

/* debug_regs_init - take the interrupt that makes a CPU load. Context: boot. */
void debug_regs_init(void);

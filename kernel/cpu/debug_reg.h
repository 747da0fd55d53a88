/* debug_reg.h - gives the debug registers DR0 to DR3 to owners, and loads them with the
 * same content on all CPUs.
 *
 * One table says what the registers hold. Each CPU loads its registers from it when it
 * starts, and when it is asked to.
 *
 *     i = debug_reg_take("gdb", hit);                     -EBUSY: all are taken, see owner
 *     debug_reg_put(i, addr, DEBUG_REG_WRITE, 4);         in the table
 *     debug_regs_load_all();                              thread: now every CPU watches
 *     ...
 *     debug_reg_move(i, 0);
 *     debug_regs_load_all();                              no CPU watches any more
 *     debug_reg_give(i);
 *
 * A hit of a register raises #DB. Entry code saves DR6 in the image, and clears the
 * register. The engine's handler of #DB asks debug_reg_hits() once which bits are hits,
 * and debug_regs_tell() calls the owners of the registers that are not the engine's. A
 * #DB without a cause is dropped.
 *
 * Source: SDM vol. 3B, "Debug Registers".
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_REGS 4

/* What raises #DB, with the values of DR7. DR7 has no kind for reads alone; the kind for
 * I/O ports is not offered.
 */
enum debug_reg_kind {
    DEBUG_REG_EXECUTE = 0, /* before an instruction is executed; length 1 */
    DEBUG_REG_WRITE = 1,   /* after an instruction has written */
    DEBUG_REG_ACCESS = 3,  /* after an instruction has read or written */
};

#define DEBUG_REG_OWNER_MAX 64 /* bytes of a name, NUL included */

/* debug_reg_hit_t - handle a hit of register @i, which has trapped with @regs. The function
 * may wait, with interrupts off; then debug_reg_is_hit() tells whether the hit still is one.
 * Return: true: it was handled, so if the register stops CPUs before an instruction, the CPU
 * executes this instruction now. False: it was no hit any more. Context: trap.
 */
typedef bool (*debug_reg_hit_t)(struct pt_regs *regs, unsigned i);

/* debug_reg_take - take a free register.
 * @owner: the owner's name; it is copied, and cut if it is too long
 * @hit:   called by debug_regs_tell(). NULL: no function is called
 * debug_reg_give - give register @i back. The caller has taken it, and no CPU watches
 * anything with it. Context: any. For the same register, one CPU at a time.
 * Return:  debug_reg_take(): the register, 0..DEBUG_REGS-1; -EBUSY all are taken.
 */
int debug_reg_take(const char *owner, debug_reg_hit_t hit);
void debug_reg_give(unsigned i);
/* debug_reg_owner - get the name of the owner of @i; NULL: @i is free. Context: any. */
const char *debug_reg_owner(unsigned i);

/* debug_reg_put - set in the table what register @i watches.
 * @addr: a multiple of @len; 0: nothing yet
 * @len:  1, 2, 4 or 8 bytes
 * debug_reg_move - change only the address in the table; 0: the register watches nothing.
 * debug_reg_addr - get the address from the table.
 * Context: any. If two CPUs change the same register at once, the last change counts.
 */
void debug_reg_put(unsigned i, uintptr_t addr, enum debug_reg_kind kind, size_t len);
void debug_reg_move(unsigned i, uintptr_t addr);
uintptr_t debug_reg_addr(unsigned i);

/* debug_regs_load - load the registers of the executing CPU from the table.
 * debug_regs_load_soon - let the executing CPU load at once, and each other CPU when it
 * takes an interrupt. Until then debug_reg_hits() does not count hits of addresses that
 * are not in the table any more. Context: any.
 * debug_regs_load_all - let all CPUs load, and wait until all have done so.
 * Context: as smp_call_all().
 */
void debug_regs_load(void);
void debug_regs_load_soon(void);
void debug_regs_load_all(void);

/* debug_reg_hits - get the registers that have been hit, one bit each: the bits of @dr6 for
 * registers that the table uses and that have not changed since the trap; and those of
 * registers that watch the same bytes. The processor may set other bits, too.
 * debug_reg_is_hit - has neither register @i nor the table changed since the trap?
 * @dr6: of the image; debug_reg_is_hit() does not look at the bit of @i
 * Context: trap.
 */
unsigned debug_reg_hits(unsigned long dr6);
bool debug_reg_is_hit(unsigned long dr6, unsigned i);

/* debug_regs_tell - tell the owners of the registers in @bits, a part of debug_reg_hits(),
 * that these were hit. Let the CPU go past an instruction before which they have stopped it.
 * @miss: call no owner: the CPU is handling another hit
 * Context: trap.
 */
void debug_regs_tell(struct pt_regs *regs, unsigned bits, bool miss);

/* debug_regs_at_entry - has this #DB interrupted the entry code of another #DB, before
 * that code had cleared DR6? Then the other #DB reports the hits, and this #DB is over.
 * Context: trap.
 */
bool debug_regs_at_entry(const struct pt_regs *regs);

/* debug_regs_set_aside - an NMI begins. If it has interrupted the entry code of a #DB,
 * clear DR6: a #DB inside the NMI must not take a bit for its own. Context: nmi.
 * Return: what that entry code has still to read, for debug_regs_give_back() at the end of
 *         the NMI; 0: nothing
 */
uint64_t debug_regs_set_aside(const struct pt_regs *regs);
void debug_regs_give_back(uint64_t dr6);

/* debug_regs_rest - disable the registers of @bits on this CPU until the current NMI ends:
 * only IRET loads RF, which lets an instruction pass, and IRET would let the next NMI in.
 * debug_regs_wake - enable them again at the end of the NMI; entry.asm calls this.
 * Context: trap; nmi.
 */
void debug_regs_rest(unsigned bits);
void debug_regs_wake(void);

/* debug_reg_is_own - does the code that handles a hit access the @len bytes at @addr? A
 * register that watches them would be hit again by the handling of each hit, without end.
 * Context: any.
 */
bool debug_reg_is_own(uintptr_t addr, size_t len);

/* debug_regs_init - set the handler of the interrupt that makes a CPU load.
 * Context: boot.
 */
void debug_regs_init(void);

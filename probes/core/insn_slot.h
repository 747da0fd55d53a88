/* insn_slot.h - executable cells for copies of probed instructions.
 *
 * Every cell knows its site. So an ip in a cell tells, with no other state, which
 * instruction is being run: faults, steps and backtraces depend on that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct site;

#define INSN_SLOT_LEN 32                       /* bytes of a cell */
#define INSN_SLOT_CODE_MAX (INSN_SLOT_LEN - 8) /* the last 8 hold the owner */
#define INSN_SLOT_LARGE_LEN 64                 /* for the few that do not fit */
#define INSN_SLOT_LARGE_CODE_MAX (INSN_SLOT_LARGE_LEN - 8)
#define INSN_SLOT_DETOUR_LEN 352 /* for a specialized detour: eleven in a page */
#define INSN_SLOT_DETOUR_CODE_MAX (INSN_SLOT_DETOUR_LEN - 8)
/* Pages of these, at most: 48 MiB. The rest of the detour arenas is left to copies, without
 * which a probe cannot be registered at all.
 */
#define INSN_SLOT_DETOUR_PAGES_MAX 12288

/* insn_slot_init - Context: boot, before the first trap.  Return: 0; -ENOMEM. */
int insn_slot_init(void);

/* insn_slot_reserve - a cell, still full of int3: its address decides what goes in.
 * @cell_len: one of the three above
 * Locks: PLAT_PROBES held.
 * Return: NULL without executable memory; of INSN_SLOT_DETOUR_LEN bytes, also when the cell
 *         would take more pages than insn_slot_detour_limit() allows.
 */
uint8_t *insn_slot_reserve(size_t cell_len);
/* insn_slot_fill - write @len bytes of code for @owner. CPUs may run into it only after the
 * next plat_sync_cores(). @slot: as reserved
 * Locks: PLAT_PROBES and PLAT_TEXT held.
 */
void insn_slot_fill(uint8_t *slot, struct site *owner, const uint8_t *code, size_t len);
/* insn_slot_put - give a cell back, filled or not; it is full of int3 again. No CPU may be
 * inside or come back. @slot: any byte of it; NULL does nothing.
 * Locks: PLAT_PROBES and PLAT_TEXT held.
 */
void insn_slot_put(uint8_t *slot);

/* insn_slot_start - the first byte of the cell that @at, any byte of a cell, lies in.
 * Context: any.
 */
uint8_t *insn_slot_start(const uint8_t *at);
/* insn_slot_room - how many bytes of code fit from @at, a byte of a cell, to the cell's
 * end.
 * Context: any.
 */
size_t insn_slot_room(const uint8_t *at);
/* insn_slot_owner - the site that the cell around @ip belongs to; NULL when @ip is in no
 * cell.
 * @off: receives the distance from the cell's first byte to @ip, in bytes
 * Context: any.
 */
struct site *insn_slot_owner(uintptr_t ip, size_t *off);

/* insn_slot_detour_bytes - the memory of the pages with cells of INSN_SLOT_DETOUR_LEN.
 * insn_slot_detour_limit - allow at most @pages such pages from now on. When there are more
 * already, no new cell is handed out, and the cells in use stay. For tests.
 * Return: the limit until now.
 * Locks: PLAT_PROBES held.
 */
size_t insn_slot_detour_bytes(void);
size_t insn_slot_detour_limit(size_t pages);
/* insn_slot_pages - pages held. insn_slot_exit - give empty ones back; Locks: both held. */
size_t insn_slot_pages(void);
void insn_slot_exit(void);

/* insn_slot.h - hands out executable cells for copies of probed instructions.
 *
 * Every cell holds the address of its site. So an ip in a cell tells, without any other
 * state, which instruction is being run: faults, steps and backtraces depend on that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct site;

#define INSN_SLOT_LEN 32                       /* bytes of a cell */
#define INSN_SLOT_CODE_MAX (INSN_SLOT_LEN - 8) /* the last 8 hold the owner */
#define INSN_SLOT_COUNTED_LEN 40 /* for a copy behind a long front: ext_front_len() */
#define INSN_SLOT_COUNTED_CODE_MAX (INSN_SLOT_COUNTED_LEN - 8)
#define INSN_SLOT_LARGE_LEN 64 /* for the few copies that do not fit */
#define INSN_SLOT_LARGE_CODE_MAX (INSN_SLOT_LARGE_LEN - 8)
#define INSN_SLOT_DETOUR_LEN 352 /* for a specialized detour: eleven cells in a page */
#define INSN_SLOT_DETOUR_CODE_MAX (INSN_SLOT_DETOUR_LEN - 8)
#define INSN_SLOT_LONG_LEN 992 /* for long programs: four cells in a page */
#define INSN_SLOT_LONG_CODE_MAX (INSN_SLOT_LONG_LEN - 8)
/* At most this many pages have cells for specialized detours: 48 MiB. The rest of the
 * detour arenas is left to copies: without a copy a probe cannot be registered at all.
 */
#define INSN_SLOT_PAGES_MAX 12288

/* insn_slot_init - make the map of the pages with cells.
 * Context: boot. The first trap has not come yet.  Return: 0; -ENOMEM.
 */
int insn_slot_init(void);

/* insn_slot_reserve - take a free cell. It is full of int3. The caller makes code for the
 * address of the cell, and then calls insn_slot_fill().
 * @cell_len: one of the five lengths above
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 * Return: NULL: there is no executable memory; or @cell_len is INSN_SLOT_DETOUR_LEN, and
 *         the cell would need more pages than insn_slot_detour_limit() allows.
 */
uint8_t *insn_slot_reserve(size_t cell_len);
/* insn_slot_len - return the length of the smallest cell that holds @code_len bytes of
 * code, at most INSN_SLOT_LONG_CODE_MAX. Context: any.
 */
size_t insn_slot_len(size_t code_len);
/* insn_slot_fill - write @len bytes of code for @owner into a cell. CPUs may run into the
 * code only after the next plat_sync_cores(). @slot: the cell, as reserved
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void insn_slot_fill(uint8_t *slot, struct site *owner, const uint8_t *code, size_t len);
/* insn_slot_put - give a cell back, whether it was filled or not. The cell is filled with
 * int3. No CPU may be inside the cell, or come back to it.
 * @slot: the address of any byte of the cell; NULL: nothing is done
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void insn_slot_put(uint8_t *slot);

/* insn_slot_start - return the address of the cell that @at lies in. Context: any. */
uint8_t *insn_slot_start(const uint8_t *at);
/* insn_slot_room - return how many bytes of code fit between @at, an address in a cell,
 * and the owner at the end of the cell. Context: any.
 */
size_t insn_slot_room(const uint8_t *at);
/* insn_slot_owner - return the site of the cell that @ip lies in. NULL: @ip is in no
 * cell.
 * @off: receives the distance from the cell's first byte to @ip, in bytes
 * Context: any.
 */
struct site *insn_slot_owner(uintptr_t ip, size_t *off);

/* insn_slot_detour_bytes - return the size of all pages with cells of
 * INSN_SLOT_DETOUR_LEN.
 * insn_slot_detour_limit - allow at most @pages such pages from now on. If there are more
 * pages already, no new cell is handed out, and the cells in use stay. For tests.
 * Return: the limit until now.
 * Locks: PLAT_PROBES held.
 */
size_t insn_slot_detour_bytes(void);
size_t insn_slot_detour_limit(size_t pages);
/* insn_slot_pages - return the number of all pages with cells.
 * insn_slot_exit - free the pages without a used cell. Locks: PLAT_PROBES held.
 */
size_t insn_slot_pages(void);
void insn_slot_exit(void);

/* port_fake_parts.h - declares what the files of port_fake use of each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_cpu;
struct pt_regs;

/* ---- port_fake.c ---- */

/* fake_breach - let the running test fail, because the engine has broken the contract of
 * @fn.
 */
void fake_breach(const char *fn, const char *what);

/* ---- port_fake_log.c ---- */

/* fake_note - add @word to the log.
 * fake_note_free - add "free" to the log, if @p is the site that the log watches.
 */
void fake_note(const char *word);
void fake_note_free(const void *p);

/* ---- port_fake_text.c ---- */

/* fake_text_start - make text and executable memory, in the first call; both stay. */
void fake_text_start(void);
/* fake_extent - return the range [*@start, *@end) of text and executable memory. */
void fake_extent(uintptr_t *start, uintptr_t *end);

/* ---- port_fake_known.c ---- */

/* fake_known_start - forget the symbols and ranges of the previous test. */
void fake_known_start(void);
/* fake_is_bad - has fake_bad() said that an access to [@addr, @addr + @len) faults? */
bool fake_is_bad(uintptr_t addr, size_t len);

/* ---- port_fake_memory.c ---- */

/* fake_must_fail - count an allocation. Return: true: fake_fail_at() wants it to fail. */
bool fake_must_fail(void);

/* ---- port_fake_cpu.c ---- */

/* fake_cpus_start - reset the data of all CPUs. */
void fake_cpus_start(void);
/* fake_check_may_sleep - let the running test fail, unless @fn is called from a thread
 * with interrupts on.
 */
void fake_check_may_sleep(const char *fn);
/* fake_check_may_lock - the same, but @fn may also be called while the machine is held,
 * since it waits neither for a CPU nor for a thread.
 */
void fake_check_may_lock(const char *fn);

/* fake_take - let the executing CPU take a trap with @regs, and call @handler for it.
 * Return: whether @handler has dealt with the trap.
 */
bool fake_take(struct pt_regs *regs,
               bool (*handler)(struct pt_regs *regs, struct probe_cpu *cpu));

/* ---- port_fake_rooms.c, or port_fake_none.c ---- */

/* fake_rooms_start, fake_rooms_end - start, and end, the rooms above the core. */
void fake_rooms_start(void);
void fake_rooms_end(void);

/* ---- port_fake_pads.c ---- */

void fake_pads_start(void);
/* fake_pads_read, fake_pads_write - read, and write, bytes of landing pads.
 * Return: false: there is no landing page.
 */
bool fake_pads_read(void *dst, uintptr_t addr, size_t len);
bool fake_pads_write(uintptr_t addr, const void *bytes, size_t len);

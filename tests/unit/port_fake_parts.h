/* port_fake_parts.h - what the files of the platform over arrays know of each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_cpu;
struct pt_regs;

/* ---- port_fake.c ---- */

/* fake_breach - the contract of @fn is broken: the running test fails. */
void fake_breach(const char *fn, const char *what);

/* ---- port_fake_log.c ---- */

/* fake_note - something happens to the text: add @word to the log.
 * fake_note_free - @p is freed, which may be the site that the log watches.
 */
void fake_note(const char *word);
void fake_note_free(const void *p);

/* ---- port_fake_text.c ---- */

/* fake_text_start - the first call makes text and executable memory. They stay. */
void fake_text_start(void);
/* fake_extent - from the first byte of text to the last executable one. */
void fake_extent(uintptr_t *start, uintptr_t *end);

/* ---- port_fake_known.c ---- */

/* fake_known_start - forget the symbols and ranges of the test before. */
void fake_known_start(void);
/* fake_is_bad - does an access to [@addr, @addr + @len) fault, as fake_bad() has said? */
bool fake_is_bad(uintptr_t addr, size_t len);

/* ---- port_fake_memory.c ---- */

/* fake_must_fail - is it this allocation's turn, as fake_fail_at() has said? */
bool fake_must_fail(void);

/* ---- port_fake_cpu.c ---- */

/* fake_cpus_start - no CPU has been in a trap yet. */
void fake_cpus_start(void);
/* fake_check_may_sleep - calls of @fn are for threads with interrupts on: else the running
 * test fails.
 */
void fake_check_may_sleep(const char *fn);

/* fake_take - CPU 0 takes a trap with @regs, which @handler is to deal with.
 * Return: whether it has.
 */
bool fake_take(struct pt_regs *regs,
               bool (*handler)(struct pt_regs *regs, struct probe_cpu *cpu));

/* ---- port_fake_rooms.c, or port_fake_none.c ---- */

/* fake_rooms_start, fake_rooms_end - what is above the core begins, and ends. */
void fake_rooms_start(void);
void fake_rooms_end(void);

/* ---- port_fake_pads.c ---- */

void fake_pads_start(void);
/* fake_pads_read, fake_pads_write - Return: false where no landing page is. */
bool fake_pads_read(void *dst, uintptr_t addr, size_t len);
bool fake_pads_write(uintptr_t addr, const void *bytes, size_t len);

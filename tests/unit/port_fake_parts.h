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
/* fake_must_fail - is it this allocation's turn, as fake_fail_at() has said? */
bool fake_must_fail(void);
/* fake_extent - from the first byte of text to the last executable one. */
void fake_extent(uintptr_t *start, uintptr_t *end);

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

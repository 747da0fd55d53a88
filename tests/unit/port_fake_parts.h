/* port_fake_parts.h - what the files of the platform over arrays know of each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- port_fake.c ---- */

/* fake_breach - the contract of @fn is broken: the running test fails. */
void fake_breach(const char *fn, const char *what);
/* fake_must_fail - is it this allocation's turn, as fake_fail_at() has said? */
bool fake_must_fail(void);
/* fake_extent - from the first byte of text to the last executable one. */
void fake_extent(uintptr_t *start, uintptr_t *end);

/* ---- port_fake_pads.c ---- */

void fake_pads_start(void);
/* fake_pads_read, fake_pads_write - Return: false where no landing page is. */
bool fake_pads_read(void *dst, uintptr_t addr, size_t len);
bool fake_pads_write(uintptr_t addr, const void *bytes, size_t len);

/* symbol_text.h - writes addresses as texts. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A function that writes an address as a text with a NUL, "vfs_read+0x4/0x90", into @size
 * bytes. Return: its length; 0: the address is in no function.
 */
typedef size_t (*symbol_text_t)(char *buf, size_t size, uintptr_t addr);

/* address_text - write @addr as @symbol does, or as a number. An address behind a function,
 * which begins no other, is the end of that function.
 * caller_text - the same, of a return address. Behind a call that does not return it is the
 * end of its function, also where the next function begins.
 * @symbol: NULL: all addresses are written as numbers
 * Return:  @buf.
 */
const char *address_text(char *buf, size_t size, uint64_t addr, symbol_text_t symbol);
const char *caller_text(char *buf, size_t size, uint64_t addr, symbol_text_t symbol);

/* port_elf.h - platform.h over the file of a kernel: nothing runs, everything can be asked.
 * Host only.
 */
#pragma once

#include "probes/core/platform.h"

/* elf_load - let the engine see the image at @path, which is one of ours: it has tables of
 * symbols and of branch targets. Return: false, and it has been said why.
 */
bool elf_load(const char *path);

/* elf_take_marks - the engine hears of NOKPROBE in it. Return: as blacklist_add(). */
int elf_take_marks(void);

/* elf_text - its text. */
void elf_text(uintptr_t *start, uintptr_t *end);
/* elf_functions - functions by address; called for each. */
void elf_functions(void (*fn)(const struct plat_symbol *function, void *arg), void *arg);

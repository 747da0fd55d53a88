/* port_elf.h - implements platform.h from the file of a kernel, as far as the rules for
 * regions need it. No code of the kernel runs. Host only.
 */
#pragma once

#include "probes/core/platform.h"

/* elf_load - load the image at @path for the engine. It must be an image of this kernel,
 * with its tables of symbols and of targets.
 * Return: false: it has failed, and has printed the reason.
 */
bool elf_load(const char *path);

/* elf_take_marks - give the marks of NOKPROBE in the image to the engine.
 * Return: as blacklist_add().
 */
int elf_take_marks(void);

/* elf_text - return the range [*@start, *@end) of the text. */
void elf_text(uintptr_t *start, uintptr_t *end);
/* elf_functions - call @fn for each function, by ascending address. */
void elf_functions(void (*fn)(const struct plat_symbol *function, void *arg), void *arg);

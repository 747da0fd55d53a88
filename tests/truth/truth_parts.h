/* truth_parts.h - functions that the commands `truth` and `truth-module` share. */
#pragma once

#include "probes/core/platform.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handlers that do nothing, and must not be probed. */
int truth_before(struct kprobe *p, struct pt_regs *regs);
void truth_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags);

/* truth_function_get - get the function of symbol @i. Return: false: the symbol is no
 * function, or lies inside of one.
 */
bool truth_function_get(size_t i, struct plat_symbol *function);

/* truth_find_links - make all jumps that can be made, and find the links
 * between their detours.
 * @past: receives for each probe the address of the jump that leads past its instruction
 *        into its detour, or 0
 *
 * Context: thread.
 */
void truth_find_links(struct kprobe *const *ps, uintptr_t *past, size_t count);

/* truth_exec_pages - return how many pages of executable memory are in use. */
size_t truth_exec_pages(void);

/* truth_module_init - add the command `truth-module` to the console. */
void truth_module_init(void);

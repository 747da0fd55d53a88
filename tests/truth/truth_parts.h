/* truth_parts.h - what the commands `truth` and `truth-module` share. */
#pragma once

#include "probes/core/platform.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handlers that do nothing, and carry no probes. */
int truth_before(struct kprobe *p, struct pt_regs *regs);
void truth_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags);

/* truth_function_get - the symbol at @i of the table, when it is a function of its own. */
bool truth_function_get(size_t i, struct plat_symbol *function);

/* truth_find_links - make all jumps that can be made, and note into which instruction another
 * jump leads straight.
 * @past: of each probe the address of that jump, or 0
 *
 * Context: thread.
 */
void truth_find_links(struct kprobe *const *ps, uintptr_t *past, size_t count);

/* truth_exec_pages - how much executable memory is in use. */
size_t truth_exec_pages(void);

/* truth_module_init - make the other command known. */
void truth_module_init(void);

/* extable.h - searches the table of instructions that may fault, each with the address
 * where the CPU goes on then: the fix-up.
 *
 * The entries are collected by the linker from all of the image, sorted once at boot and
 * read-only from then on. An entry names two addresses, each relative to the word that
 * holds it.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extable_entry {
    int32_t insn_off;
    int32_t fixup_off;
};

/* EXTABLE(insn, fixup) - make an entry from inline asm. Both arguments are assembler
 * labels as strings: EXTABLE("1b", "2b"). NASM has the macro extable of extable.inc.
 */
#define EXTABLE(insn, fixup)                                                             \
    ".pushsection .extable, \"a\"\n\t"                                                   \
    ".balign 4\n\t"                                                                      \
    ".long (" insn ") - .\n\t"                                                           \
    ".long (" fixup ") - .\n\t"                                                          \
    ".popsection\n\t"

/* extable_sort - sort a table of entries by the addresses of the instructions.
 * extable_search - find the fix-up of the instruction at @ip in a sorted table.
 * Context: any.  Return: the address of the fix-up; 0: there is no entry.
 */
void extable_sort(struct extable_entry *entries, size_t count);
uintptr_t extable_search(const struct extable_entry *entries, size_t count, uintptr_t ip);

/* extable_init - sort the image's table, before paging_init() makes it read-only.
 * Context: boot.
 */
void extable_init(void);

/* extable_more - a socket: finds the fix-ups of loaded code,
 * which the image's table does not have, in any context. Set at boot.
 */
extern uintptr_t (*extable_more)(uintptr_t ip);

/* extable_find - find the fix-up of the instruction at @ip.
 * Context: any.  Return: its address; 0 when the instruction has no entry.
 */
uintptr_t extable_find(uintptr_t ip);

/* extable_fixup - let the image go on at the fix-up of its instruction.
 * @regs: of a fault (#PF, #GP, ...), ip on the instruction that faulted
 *
 * Context: trap.  Return: true, and regs->ip is changed; false when there is no entry.
 */
bool extable_fixup(struct pt_regs *regs);

/* How this CPU has reported the fault of the last fix-up, on any CPU. */
extern struct extable_fault {
    uint32_t vector;
    uint64_t rf; /* FLAGS_RF, or 0 */
} extable_fault;

/* copy_nofault - copy @len bytes. Both addresses may be bad: not mapped, not writable,
 * not canonical. Context: any.
 * Return:  0; -EFAULT, and the bytes before the bad one are copied.
 */
int copy_nofault(void *dst, const void *src, size_t len);

/* touch_by_stack - read the word at @addr, as one of the stack. It may be bad: extable_fault
 * tells how. Context: any.
 */
void touch_by_stack(uintptr_t addr);

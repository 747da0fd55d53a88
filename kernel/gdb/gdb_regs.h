/* gdb_regs.h - registers in the debugger's order and sizes, as target.xml lists them. */
#pragma once

#include "kernel/gdb/gdb_packet.h"

struct pt_regs;
struct thread;

/* gdb_regs_target - target.xml. Immutable. */
const char *gdb_regs_target(void);

/* gdb_regs_put - all registers of @t: of the CPU that it is on, or as they were when it left
 * its CPU. Context: serving.
 */
void gdb_regs_put(struct gdb_out *out, const struct thread *t);

/* gdb_regs_put_one - register @number, or x for each digit that is not known. Context:
 * serving.
 * Return: false: there is none of that number.
 */
bool gdb_regs_put_one(struct gdb_out *out, const struct thread *t, unsigned number);

/* gdb_regs_block - the registers of @regs as gdb_regs_put() gives them, as bytes; 0 for what
 * is not known. Return: GDB_REGS_BLOCK. Context: any.
 */
#define GDB_REGS_BLOCK 332
size_t gdb_regs_block(uint8_t *to, const struct pt_regs *regs);

/* gdb_regs_set - the hex digits at *@at become register @number of @t.
 * gdb_regs_set_all - the same for the general registers of all that gdb_regs_put() gives.
 * Return: NULL; or why not, in words. Context: serving.
 */
const char *gdb_regs_set(const struct thread *t, unsigned number, const char **at);
const char *gdb_regs_set_all(const struct thread *t, const char **at);

/* gdb_regs_ip - where the program is at @regs: code that the engine has made stands for
 * the instruction that it runs. Context: any.
 */
uintptr_t gdb_regs_ip(const struct pt_regs *regs);

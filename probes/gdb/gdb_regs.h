/* gdb_regs.h - reads and writes registers, in the debugger's order and sizes: those of
 * target.xml.
 */
#pragma once

#include "probes/gdb/gdb_packet.h"

struct pt_regs;
struct thread;

/* target.xml, which describes the registers */
extern const char gdb_regs_target[];

/* gdb_regs_put - put all registers of @t into a packet: of the CPU that @t is on, or as
 * they were when @t left its CPU. If a trace frame is selected, the registers of the
 * frame. Context: held.
 */
void gdb_regs_put(struct gdb_out *out, const struct thread *t);

/* gdb_regs_put_one - put register @number, or x for each digit that is not known.
 * Context: held.
 * Return: false: there is no register with that number.
 */
bool gdb_regs_put_one(struct gdb_out *out, const struct thread *t, unsigned number);

/* gdb_regs_block - write the registers of @regs to @to in the order of gdb_regs_put(),
 * but as bytes, and with 0 for each register that is not known. Return: GDB_REGS_BLOCK.
 * Context: any.
 */
#define GDB_REGS_BLOCK 332
size_t gdb_regs_block(uint8_t *to, const struct pt_regs *regs);

/* gdb_regs_set - set register @number of @t to the hex digits at *@at.
 * gdb_regs_set_all - do the same for the general registers, with digits as gdb_regs_put()
 * gives them.
 * Return: NULL; or why not, in words. Context: held.
 */
const char *gdb_regs_set(const struct thread *t, unsigned number, const char **at);
const char *gdb_regs_set_all(const struct thread *t, const char **at);

/* files.h - the files of the tracer that need no definitions. */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/trace/print.h"

/* trace_init - the buffer and its files. Context: boot thread, all CPUs online.
 * Return: 0; -ENOMEM; as vfs_add_tree().
 */
int trace_init(void);

/* trace_printer - prints to @s what the options say. */
void trace_printer(struct print *p, struct seq *s);

/* trace_symbol - "vfs_read+0x4/0x90" for an address, as struct print has it. Context: any. */
size_t trace_symbol(char *buf, size_t size, uintptr_t addr);

/* What is switched below options/, as bits of trace_options. */
enum trace_option {
    OPTION_CONTEXT_INFO,   /* thread, CPU and time before each event */
    OPTION_IRQ_INFO,       /* and the flags of the CPU */
    OPTION_MARKERS,        /* trace_marker may be written */
    OPTION_OVERWRITE,      /* the oldest records make room */
    OPTION_PAUSE_ON_TRACE, /* nothing is recorded while `trace` is read */
    OPTIONS,
};

/* trace_option_is - Context: any. */
bool trace_option_is(enum trace_option option);

/* trace_add_options - options/, trace_options, trace_clock, current_tracer and what goes
 * with them. Context: boot.  Return: as vfs_add_tree().
 */
int trace_add_options(void);
/* trace_add_buffer_files - buffer_size_kb, per_cpu/ and so on. Context, Return: the same. */
int trace_add_buffer_files(void);

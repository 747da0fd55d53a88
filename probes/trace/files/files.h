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

/* The options, each a file below options/ and a bit of trace_options, in the order of Linux's
 * list. idle: the option is about a thing that this kernel lacks, so it can only be set and
 * read.
 */
enum trace_option {
    OPTION_PRINT_PARENT,    /* idle: of tracers of functions */
    OPTION_SYM_OFFSET,      /* "vfs_read+0x0/0x90" where else "vfs_read" is enough */
    OPTION_SYM_ADDR,        /* places are followed by their addresses */
    OPTION_TRACE_PRINTK,    /* idle: nothing calls trace_printk() */
    OPTION_USERSTACKTRACE,  /* idle: there are no users */
    OPTION_SYM_USEROBJ,     /* idle */
    OPTION_PRINTK_MSG_ONLY, /* idle: of trace_printk() */
    OPTION_CONTEXT_INFO,    /* thread, CPU and time before each event */
    OPTION_OVERWRITE,       /* the oldest records make room */
    OPTION_IRQ_INFO,        /* the flags of the CPU stand there, too */
    OPTION_MARKERS,         /* trace_marker may be written */
    OPTION_EVENT_FORK,      /* idle: no thread is the child of another */
    OPTION_PAUSE_ON_TRACE,  /* nothing is recorded while `trace` is read */
    OPTION_HASH_PTR,        /* idle: no address is hidden */
    OPTION_FUNCTION_TRACE,  /* idle: of tracers of functions, as the next ones */
    OPTION_FUNCTION_FORK,   /* idle */
    OPTION_DISPLAY_GRAPH,   /* idle */
    OPTIONS,
};

/* trace_option_is - Context: any. */
bool trace_option_is(enum trace_option option);

/* trace_clock_is_cycles - are times something else than nanoseconds? Context: any. */
bool trace_clock_is_cycles(void);
/* trace_set_clock - records have times of the clock @name from now on. Earlier records are
 * gone.
 * @name: @len bytes
 * Locks: the trace lock held.  Return: 0; -EINVAL: there is no such clock; -ENOMEM.
 */
int trace_set_clock(const char *name, size_t len);

/* trace_takes_hit - is a hit that happens here and now recorded, whatever its event? It may
 * be of a CPU or a thread that is not wanted.
 * Context: any, preemption off.
 * Cost:    four loads; with lists of threads a search in each.
 */
bool trace_takes_hit(void);

/* trace_add_options - options/, trace_options, trace_clock, current_tracer and what goes
 * with them. Context: boot.  Return: as vfs_add_tree().
 */
int trace_add_options(void);
/* trace_add_buffer_files - buffer_size_kb, per_cpu/ and so on. Context, Return: the same. */
int trace_add_buffer_files(void);

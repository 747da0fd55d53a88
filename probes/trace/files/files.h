/* files.h - makes the files of the tracer that do not belong to an event. */
#pragma once

#include "kernel/fs/seq.h"
#include "probes/trace/ring/print.h"

/* trace_init - make the buffer and the files of the tracer. Context: thread, all CPUs
 * online.
 * Return: 0; -ENOMEM; as vfs_add_tree().
 */
int trace_init(void);

/* trace_printer - set @p up so that it prints to @s in the way that the options say. */
void trace_printer(struct print *p, struct seq *s);

/* The options, in the order of Linux's list. Each is a file below options/ and a word of
 * trace_options. idle: the option has no effect, because this kernel lacks its subject.
 */
enum trace_option {
    OPTION_PRINT_PARENT,   /* idle: for tracers of functions */
    OPTION_SYM_OFFSET,     /* print "vfs_read+0x0/0x90" also where "vfs_read" is enough */
    OPTION_SYM_ADDR,       /* print the address behind the name of a place */
    OPTION_TRACE_PRINTK,   /* idle: nothing calls trace_printk() */
    OPTION_USERSTACKTRACE, /* idle: there are no user processes */
    OPTION_SYM_USEROBJ,    /* idle: the same */
    OPTION_PRINTK_MSG_ONLY, /* idle: for trace_printk() */
    OPTION_CONTEXT_INFO,    /* print thread, CPU and time in front of each event */
    OPTION_OVERWRITE,       /* a full ring overwrites its oldest records */
    OPTION_IRQ_INFO,        /* print the flags of the CPU in front of each event */
    OPTION_MARKERS,         /* trace_marker may be written */
    OPTION_EVENT_FORK,      /* idle: no thread is the child of another */
    OPTION_PAUSE_ON_TRACE,  /* record nothing while `trace` is read */
    OPTION_HASH_PTR,        /* idle: no address is hidden */
    OPTION_FUNCTION_TRACE,  /* idle: for tracers of functions */
    OPTION_FUNCTION_FORK,   /* idle: the same */
    OPTION_DISPLAY_GRAPH,   /* idle: the same */
    OPTION_STACKTRACE,      /* each record is followed by its stack */
    OPTION_CLASSIC,         /* not Linux's: places in the style of the first tracer */
    OPTIONS,
};

/* trace_option_is - tell whether an option is set. Context: any. */
bool trace_option_is(enum trace_option option);

/* trace_add_options - make options/, trace_options, trace_clock, current_tracer and
 * available_tracers. Context: boot.  Return: as vfs_add_tree().
 */
int trace_add_options(void);
/* trace_add_buffer_files - make buffer_size_kb, buffer_total_size_kb and per_cpu/.
 * Context, Return: the same.
 */
int trace_add_buffer_files(void);

/* print.h - records as lines of text, as Linux prints them. Pure. */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/trace/event.h"

struct print {
    void (*write)(void *to, const char *text, size_t len);
    void *to;
    /* "vfs_read+0x4/0x90" for an address. Return: its length; 0: it is in no function. */
    size_t (*symbol)(char *buf, size_t size, uintptr_t addr);
    /* The name of a thread, into 16 bytes with a NUL. Return: false: it is not known. */
    bool (*comm)(int pid, char *buf);
    bool cycles; /* times are no nanoseconds */
    bool brief;  /* neither thread nor CPU nor time: options/context-info is off */
    bool no_irq_info;
    bool offsets;   /* names that need no "+0x4/0x90" have it */
    bool addresses; /* behind names of places stands the address */
};

/* print_text - formatted text of any length. */
void print_text(const struct print *p, const char *fmt, ...) PRINTF(2, 3);

/* print_header - what a listing begins with.
 * @entries, @written: records in it, and all that were written since it was empty
 */
void print_header(const struct print *p, const char *tracer, uint64_t entries,
                  uint64_t written, unsigned cpus);

/* print_lost - the line for @missed records that were lost on @cpu, or PAGE_MISSED_SOME. */
void print_lost(const struct print *p, unsigned cpu, uint64_t missed);

/* print_record - its line.
 * @event: its; NULL: it is gone, which the line says
 * @len:   bytes, as event_of() was given them
 */
void print_record(const struct print *p, const struct event *event, unsigned cpu,
                  uint64_t time, const void *record, size_t len);

/* print_args - " a=1 b=0x2": what fetch_args() stored.
 * @head: bytes before the first argument
 */
void print_args(const struct print *p, const struct fetch_arg *args, size_t count,
                const void *record, size_t head, size_t len);

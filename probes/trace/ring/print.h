/* print.h - prints records as lines of text, as Linux does. Pure. */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/trace/language/event.h"
#include "probes/trace/language/symbol_text.h"

struct print {
    void (*write)(void *to, const char *text, size_t len);
    void *to;
    symbol_text_t symbol; /* NULL: addresses are written as numbers */
    /* Write the name of a thread with a NUL into @buf, 16 bytes. Return: false: the
     * thread is not known.
     */
    bool (*comm)(int pid, char *buf);
    bool cycles; /* times are not in nanoseconds: print them as plain numbers */
    bool brief;  /* print no thread, CPU and time: options/context-info is off */
    bool no_irq_info;
    bool offsets; /* print "+0x4/0x90" also where a name is usually printed without it */
    bool addresses; /* print the address behind the name of a place */
    bool classic;   /* print places as the first tracer of kprobes did: "@vfs_read+0x4" */
};

/* print_text - print formatted text, and cut it after 255 bytes. */
void print_text(const struct print *p, const char *fmt, ...) PRINTF(2, 3);

/* print_header - print the first lines of a listing.
 * @entries: records in the buffer
 * @written: records that were written since the buffer was empty
 */
void print_header(const struct print *p, const char *tracer, uint64_t entries,
                  uint64_t written, unsigned cpus);

/* print_lost - print a line for @missed records that were lost on @cpu.
 * @missed: may be PAGE_MISSED_SOME; 0: print nothing
 */
void print_lost(const struct print *p, unsigned cpu, uint64_t missed);

/* print_record - print the line of a record.
 * @event: the event of the record; NULL: it was deleted, and the line says so
 * @len:   bytes of the record, as they were given to event_of()
 */
void print_record(const struct print *p, const struct event *event, unsigned cpu,
                  uint64_t time, const void *record, size_t len);

/* print_args - print the values that fetch_args() stored, as " a=1 b=0x2".
 * @head: bytes of the record before the first argument
 */
void print_args(const struct print *p, const struct fetch_arg *args, size_t count,
                const void *record, size_t head, size_t len);

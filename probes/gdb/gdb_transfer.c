/* gdb_transfer.c - sends answers that may be longer than a packet: the list of threads,
 * and documents, which the debugger reads piece by piece.
 *
 * Source: GDB manual, "General Query Packets".
 */
#include "probes/gdb/gdb_transfer.h"

#include "probes/gdb/gdb_frame.h"
#include "probes/gdb/gdb_regs.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/gdb/gdb_threads.h"
#include "probes/gdb/gdb_tracepoint.h"
#include "probes/port/port_held.h"

#include <stdio.h>
#include <string.h>

static struct thread *listed; /* where the last packet was full, or NULL */

/* ---- threads ---- */

/* 20 bytes have room for the longest number and a comma. */
static bool list_thread(struct thread *t, void *arg)
{
    struct gdb_request *r = arg;

    if (listed && listed != t)
        return true; /* the last packet has it */
    listed = NULL;
    if (gdb_out_room(r->out) < 20) {
        listed = t;
        return false;
    }
    gdb_put_text(r->out, gdb_is_empty(r->out) ? "m" : ",");
    gdb_thread_put(r->out, t);
    return true;
}

void gdb_query_threads(struct gdb_request *r)
{
    listed = NULL;
    port_threads(list_thread, r);
}

/* The first packet lists the threads that fit. Its 16 KiB have room for more than a
 * thousand.
 */
void gdb_query_more_threads(struct gdb_request *r)
{
    if (listed)
        port_threads(list_thread, r);
    if (gdb_is_empty(r->out))
        gdb_put_text(r->out, "l");
}

void gdb_query_thread_text(struct gdb_request *r)
{
    char state[32], text[64];
    uint64_t id;
    struct thread *t;

    if (!gdb_take_number(&r->at, &id) || !(t = gdb_thread_find((unsigned)id))) {
        gdb_error(r, "no such thread");
        return;
    }
    gdb_thread_state(t, state, sizeof(state));
    scnprintf(text, sizeof(text), "%s, %s", t->name, state);
    gdb_put_hex(r->out, text, strlen(text));
}

/* ---- qXfer ---- */

/* A piece of a document. For each piece the document is made from its beginning, and only
 * the wanted bytes are sent.
 */
struct transfer {
    struct gdb_out *out;
    uint64_t from, len; /* wanted */
    uint64_t at;        /* bytes made so far */
    bool is_more;
};

static void transfer_add(struct transfer *p, const char *text)
{
    for (; *text; text++, p->at++) {
        if (p->at < p->from)
            continue;
        if (p->at - p->from >= p->len || gdb_out_room(p->out) < 2) {
            p->is_more = true;
            return;
        }
        gdb_put_escaped(p->out, text, 1);
    }
}

/* name_put - copy a thread's name, without what has a meaning in XML. */
static void name_put(char *to, const char *name, size_t size)
{
    strlcpy(to, name, size);
    for (; *to; to++)
        if (strchr("<>&\"", *to))
            *to = '?';
}

/* gdb reads this document at each stop, and the line is slow, so it is short. */
static bool add_thread(struct thread *t, void *arg)
{
    char line[160], state[32], name[sizeof(t->name)];
    int cpu = gdb_cpu_of(t);

    gdb_thread_state(t, state, sizeof(state));
    name_put(name, t->name, sizeof(name));
    scnprintf(line, sizeof(line), "<thread id=\"%x\" name=\"%s\"", gdb_thread_id(t),
              name);
    transfer_add(arg, line);
    if (cpu >= 0) {
        scnprintf(line, sizeof(line), " core=\"%x\"", (unsigned)cpu);
        transfer_add(arg, line);
    }
    scnprintf(line, sizeof(line), ">%s</thread>", state);
    transfer_add(arg, line);
    return !((struct transfer *)arg)->is_more;
}

static void write_threads(struct transfer *p)
{
    transfer_add(p, "<threads>");
    port_threads(add_thread, p);
    transfer_add(p, "</threads>");
}

static void write_target_xml(struct transfer *p)
{
    transfer_add(p, gdb_regs_target);
}

static void transfer_answer(struct gdb_request *r, void (*write)(struct transfer *p))
{
    struct transfer p = { .out = r->out };

    if (!gdb_take_range(r, &p.from, &p.len)) {
        gdb_error(r, "no offset or length");
        return;
    }
    gdb_put_text(r->out, "l");
    write(&p);
    if (p.is_more)
        r->out->frame[1] = 'm';
}

static void add_collected(void *arg, bool is_memory, uint64_t start, uint64_t len)
{
    char line[96];

    if (is_memory)
        scnprintf(line, sizeof(line), "<memory start=\"0x%lx\" length=\"0x%lx\"/>\n",
                  start, len);
    else
        scnprintf(line, sizeof(line), "<tvar id=\"0x%lx\"/>\n", start);
    transfer_add(arg, line);
}

static void write_collected(struct transfer *p)
{
    transfer_add(p, "<?xml version=\"1.0\"?><traceframe-info>\n");
    if (gdb_frame_is_selected())
        gdb_frame_info(add_collected, p);
    transfer_add(p, "</traceframe-info>\n");
}

void gdb_query_collected(struct gdb_request *r)
{
    transfer_answer(r, write_collected);
}

void gdb_query_target(struct gdb_request *r)
{
    transfer_answer(r, write_target_xml);
}

void gdb_query_thread_document(struct gdb_request *r)
{
    transfer_answer(r, write_threads);
}

/* gdb_trace.c - starts and stops a trace, tells its status, and dispatches the packets of
 * tracepoints.
 *
 * Source: GDB manual, "Tracepoint Packets".
 */
#include "probes/gdb/gdb_trace.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "probes/gdb/gdb_define.h"
#include "probes/gdb/gdb_frame.h"
#include "probes/gdb/gdb_place.h"
#include "probes/gdb/gdb_stepping.h"

#include <stdio.h>
#include <string.h>

#define PAGES 128 /* of each CPU's ring of frames */
#define NOTE_MAX 256
#define REASON_LEN 192

static uint64_t wanted_limit; /* bytes; 0: all that there is room for */
static bool wanted_circular, stays_when_detached;
static char user[NOTE_MAX], notes[NOTE_MAX], stop_note[NOTE_MAX]; /* hex digits */
static char refusal[REASON_LEN];
static bool is_available;

INIT bool gdb_trace_init(void)
{
    is_available = cpu_count() <= MAX_CPUS_TRACED && gdb_collect_init() &&
                   gdb_rings_init(&gdb_frames, PAGES, false) &&
                   gdb_frame_init(cpu_count()) && gdb_define_init();
    return is_available;
}

/* ---- a trace ---- */

static uint64_t room(void)
{
    return (uint64_t)cpu_count() * PAGES * RING_DATA_LEN;
}

static uint64_t limit(void)
{
    return wanted_limit ? wanted_limit : room();
}

static void stop_trace_for(enum gdb_trace_end why)
{
    gdb_collect_end(why, 0);
    gdb_place_leave_all();
    gdb_stepping_forget();
}

static void init_trace(struct gdb_request *r)
{
    stop_trace_for(GDB_TRACE_STOPPED);
    gdb_frame_forget();
    gdb_define_forget();
    gdb_frame_constants_clear();
    memset(&gdb_trace_state, 0, sizeof(gdb_trace_state));
    gdb_rings_reset(&gdb_frames);
    gdb_ok(r);
}

static void reset_counters(void)
{
    memset(&gdb_trace_state, 0, sizeof(gdb_trace_state));
    gdb_trace_state.is_circular = wanted_circular;
    gdb_trace_state.limit = limit();
    gdb_trace_state.keeps = wanted_circular ? wanted_limit : 0;
}

static void start_trace(struct gdb_request *r)
{
    struct gdb_tracepoint *tp;
    const char *why = NULL;

    stop_trace_for(GDB_TRACE_STOPPED);
    gdb_frame_forget();
    gdb_rings_reset(&gdb_frames);
    gdb_rings_overwrite(&gdb_frames, wanted_circular);
    gdb_define_restart();
    reset_counters();
    for (size_t i = 0; !why && (tp = gdb_point(i)); i++) {
        why = gdb_place_arm(tp);
        if (why)
            scnprintf(refusal, sizeof(refusal), "tracepoint %u at 0x%lx: %s", tp->number,
                      tp->addr, why);
    }
    if (why)
        gdb_place_leave_all();
    else
        WRITE_ONCE(gdb_trace_state.runs, true);
    gdb_done(r, why ? refusal : NULL);
}

static void stop_trace(struct gdb_request *r)
{
    stop_trace_for(GDB_TRACE_STOPPED);
    gdb_ok(r);
}

void gdb_trace_detach(void)
{
    gdb_frame_forget();
    if (!stays_when_detached)
        stop_trace_for(GDB_TRACE_DISCONNECTED);
}

static void enable(struct gdb_request *r, bool on)
{
    struct gdb_tracepoint *tp = gdb_take_point(r);

    if (tp)
        WRITE_ONCE(tp->is_enabled, on);
    gdb_done(r, tp ? NULL : "there is no such tracepoint");
}

static void switch_points_on(struct gdb_request *r)
{
    enable(r, true);
}

static void switch_points_off(struct gdb_request *r)
{
    enable(r, false);
}

/* ---- settings ---- */

static void set_constants(struct gdb_request *r)
{
    uint64_t start, end;

    gdb_frame_constants_clear();
    while (gdb_take_char(&r->at, ':') && gdb_take_number(&r->at, &start) &&
           gdb_take_char(&r->at, ',') && gdb_take_number(&r->at, &end) &&
           gdb_frame_constant_add(start, end))
        ;
    gdb_ok(r);
}

static void set_circular(struct gdb_request *r)
{
    uint64_t value = 0;

    gdb_take_number(&r->at, &value);
    wanted_circular = value;
    gdb_ok(r);
}

static void set_size(struct gdb_request *r)
{
    uint64_t size;

    if (gdb_take_word(&r->at, "-1")) {
        wanted_limit = 0;
    } else if (!gdb_take_number(&r->at, &size) || !size) {
        gdb_error(r, "no size");
        return;
    } else if (size > room()) {
        scnprintf(refusal, sizeof(refusal), "the buffer has at most %lu bytes", room());
        gdb_error(r, refusal);
        return;
    } else {
        wanted_limit = size;
    }
    gdb_ok(r);
}

static void set_disconnected(struct gdb_request *r)
{
    uint64_t value = 0;

    gdb_take_number(&r->at, &value);
    stays_when_detached = value;
    gdb_ok(r);
}

static void take_note(struct gdb_request *r, char *to)
{
    size_t len = 0;

    for (; *r->at && *r->at != ';'; r->at++)
        if (len < NOTE_MAX - 1)
            to[len++] = *r->at;
    to[len & ~(size_t)1] = '\0';
}

static void set_notes(struct gdb_request *r)
{
    while (*r->at) {
        if (gdb_take_word(&r->at, "user:"))
            take_note(r, user);
        else if (gdb_take_word(&r->at, "notes:"))
            take_note(r, notes);
        else if (gdb_take_word(&r->at, "tstop:"))
            take_note(r, stop_note);
        else
            r->at++;
    }
    gdb_ok(r);
}

/* ---- what is told ---- */

static void put_text_as_hex(struct gdb_out *out, const char *text)
{
    gdb_put_hex(out, text, strlen(text));
}

static void put_field(struct gdb_out *out, const char *name, uint64_t value)
{
    gdb_put_text(out, ";");
    gdb_put_text(out, name);
    gdb_put_text(out, ":");
    gdb_put_number(out, value);
}

static void put_end(struct gdb_out *out)
{
    static const char *const names[] = { [GDB_TRACE_NOT_RUN] = ";tnotrun:0",
                                         [GDB_TRACE_FULL] = ";tfull:0",
                                         [GDB_TRACE_DISCONNECTED] = ";tdisconnected:0" };

    if (gdb_trace_state.runs) {
        gdb_put_text(out, ";tnotrun:0");
    } else if (gdb_trace_state.end == GDB_TRACE_PASSED) {
        put_field(out, "tpasscount", gdb_trace_state.end_number);
    } else if (gdb_trace_state.end == GDB_TRACE_STOPPED) {
        gdb_put_text(out, ";tstop:");
        gdb_put_text(out, stop_note);
        gdb_put_text(out, ":0");
    } else {
        gdb_put_text(out, names[gdb_trace_state.end]);
    }
}

/* put_losses - put the losses behind the notes: the user of the debugger reads them
 * there.
 */
static void put_losses(struct gdb_out *out)
{
    static const char *const names[GDB_LOSSES] = {
        [GDB_LOST_FULL] = "frames lost, no room",
        [GDB_LOST_RECURSION] = "hits lost, of code that collects",
        [GDB_LOST_CUT] = "pieces lost, the frame was full",
        [GDB_LOST_FAULT] =
            "pieces or conditions lost, memory not readable or division by 0",
        [GDB_LOST_STEPS] = "times steps lost, in an interrupt or at a switch of threads",
    };
    char text[96];

    for (size_t i = 0; i < GDB_LOSSES; i++) {
        uint64_t lost = gdb_trace_state.lost[i];

        if (!lost)
            continue;
        scnprintf(text, sizeof(text), " [%lu %s]", lost, names[i]);
        put_text_as_hex(out, text);
    }
}

static void tell_status(struct gdb_request *r)
{
    uint64_t used = gdb_trace_state.used, most = limit();

    if (gdb_trace_state.is_circular)
        used = gdb_rings_bytes(&gdb_frames);
    gdb_put_text(r->out, gdb_trace_state.runs ? "T1" : "T0");
    put_end(r->out);
    put_field(r->out, "tframes", gdb_frame_count());
    put_field(r->out, "tcreated", gdb_trace_state.created);
    put_field(r->out, "tfree", used < most ? most - used : 0);
    put_field(r->out, "tsize", most);
    put_field(r->out, "circular", wanted_circular);
    put_field(r->out, "disconn", stays_when_detached);
    gdb_put_text(r->out, ";starttime:0;stoptime:0;username:");
    gdb_put_text(r->out, user);
    gdb_put_text(r->out, ";notes:");
    gdb_put_text(r->out, notes);
    put_losses(r->out);
}

static void tell_hits(struct gdb_request *r)
{
    const struct gdb_tracepoint *tp = gdb_take_point(r);

    if (!tp)
        return; /* an empty answer: unknown */
    gdb_put_text(r->out, "V");
    gdb_put_number(r->out, tp->hits);
    gdb_put_text(r->out, ":");
    gdb_put_number(r->out, tp->bytes);
}

static void tell_variable(struct gdb_request *r)
{
    const struct gdb_variable *var;
    uint64_t number;
    int64_t value = 0;
    bool is_known;

    if (!gdb_take_number(&r->at, &number)) {
        gdb_error(r, "no number");
        return;
    }
    var = gdb_variable_of((unsigned)number);
    if (gdb_frame_is_selected())
        is_known = gdb_frame_variable((unsigned)number, &value);
    else if ((is_known = var != NULL))
        value = var->value;
    if (!is_known) {
        gdb_put_text(r->out, "U");
        return;
    }
    gdb_put_text(r->out, "V");
    gdb_put_number(r->out, (uint64_t)value);
}

/* tell_shortest - tell the shortest instruction for `ftrace`, in bytes. An instruction of
 * any length can become a jump: a pun uses the bytes behind it as they are.
 */
static void tell_shortest(struct gdb_request *r)
{
    gdb_put_text(r->out, "1");
}

/* ---- dispatch ---- */

struct row {
    const char *word;
    void (*fn)(struct gdb_request *r);
};

static void dispatch_row(struct gdb_request *r, const struct row *rows, size_t count)
{
    for (size_t i = 0; is_available && i < count; i++) {
        if (!gdb_take_word(&r->at, rows[i].word))
            continue;
        rows[i].fn(r);
        return;
    }
}

void gdb_trace_packet(struct gdb_request *r)
{
    static const struct row rows[] = {
        { "DPsrc:", gdb_define_source },
        { "DP:", gdb_define_point },
        { "DV:", gdb_define_variable },
        { "init", init_trace },
        { "Start", start_trace },
        { "Stop", stop_trace },
        { "Frame:", gdb_frame_find },
        { "Enable:", switch_points_on },
        { "Disable:", switch_points_off },
        { "ro", set_constants },
        { "Buffer:circular:", set_circular },
        { "Buffer:size:", set_size },
        { "Disconnected:", set_disconnected },
        { "Notes:", set_notes },
    };

    dispatch_row(r, rows, ARRAY_LEN(rows));
}

void gdb_trace_query(struct gdb_request *r)
{
    static const struct row rows[] = {
        { "Status", tell_status },        { "P:", tell_hits },
        { "V:", tell_variable },          { "fP", gdb_tell_points },
        { "sP", gdb_tell_next_point },    { "fV", gdb_tell_variables },
        { "sV", gdb_tell_next_variable }, { "Buffer:", gdb_frame_upload },
        { "MinFTPILen", tell_shortest },
    };

    dispatch_row(r, rows, ARRAY_LEN(rows));
}

/* film.c - records the events of a film, and makes the patcher wait between them.
 *
 * on_phase() is called for each phase of the patcher's work (text_phases.h). It finds
 * stores by comparing the filmed bytes with their earlier values, so the film shows the
 * stores of every way to change text. A film has room for EVENTS_MAX events; later events
 * are only counted.
 */
#include "probes/film/film.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/sync/wait_check.h"
#include "kernel/time/clock.h"
#include "probes/core/platform.h"
#include "probes/core/recover.h"
#include "probes/insn/encode.h"
#include "probes/insn/insn.h"
#include "probes/many/place_text.h"
#include "probes/text/text_phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 4096
#define NOTED_MAX 1 /* traps or copies of a CPU, noted between two steps of the patcher */
#define LOOK_NS UINT64_C(100000)

struct film_note {
    uint64_t ns;
    uintptr_t at;
    uint8_t kind, cpu, len;
    bool halted;
    uint8_t bytes[FILM_BYTES_MAX];
};

/* Locks:  T PLAT_TEXT   a atomic, from any context   c owning CPU only */
static struct {
    bool on;           /* [T] */
    uintptr_t addr;    /* [T] */
    size_t len;        /* [T] */
    uint64_t asked_ns; /* [T] when the last synchronisation was asked for */
    uint64_t wait_ns;  /* [T] */
    unsigned ms;       /* [T] */
    bool changed;      /* [T] the stores of the current phase have changed filmed bytes */
    uint8_t first[FILM_BYTES_MAX]; /* [T] the bytes when the film began */
    uint8_t now[FILM_BYTES_MAX];   /* [T] the bytes after the noted stores */
    uint8_t lens[FILM_BYTES_MAX];  /* [T] of the instructions; then 0 */
    struct film_note *events;      /* [T] */
    unsigned count;                /* [a] also counts events without room */
    unsigned left[MAX_CPUS];       /* [c, T] events that each CPU may note */
} film;

/* ---- notes ----------------------------------------------------------------------------- */

static ALWAYS_INLINE struct film_note *film_claim(enum film_event kind, unsigned cpu,
                                                  uintptr_t at)
{
    unsigned i = __atomic_fetch_add(&film.count, 1, __ATOMIC_RELAXED);
    struct film_note *e = &film.events[i < EVENTS_MAX ? i : EVENTS_MAX];

    e->kind = (uint8_t)kind;
    e->cpu = (uint8_t)cpu;
    e->len = 0;
    e->halted = false;
    e->at = at;
    e->ns = clock_ns_at(rdtsc());
    return e;
}

void film_note(enum film_event event, unsigned cpu, uintptr_t at)
{
    film_claim(event, cpu, at);
}
NOKPROBE(film_note);

bool film_may_note(unsigned cpu)
{
    if (!film.left[cpu])
        return false;
    film.left[cpu]--;
    return true;
}
NOKPROBE(film_may_note);

/* An int3 counts only if its store has been noted on the film. */
bool film_has_int3(uintptr_t addr)
{
    return addr - film.addr < film.len && film.now[addr - film.addr] == INSN_INT3;
}
NOKPROBE(film_has_int3);

/* ---- what the patcher does ------------------------------------------------------------- */

static void refill(void)
{
    for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
        WRITE_ONCE(film.left[cpu], NOTED_MAX);
}

/* note_stores - note each run of bytes that have changed. Return: true: there is one. */
static bool note_stores(uint64_t ns)
{
    uint8_t now[FILM_BYTES_MAX];
    bool changed = false;
    size_t end;

    if (plat_text_read(now, film.addr, film.len))
        return false;
    for (size_t i = 0; i < film.len; i = end + 1) {
        struct film_note *e;

        for (end = i; end < film.len && now[end] != film.now[end]; end++)
            ;
        if (end == i)
            continue;
        e = film_claim(FILM_STORE, cpu_id(), film.addr + i);
        e->ns = ns;
        e->len = (uint8_t)(end - i);
        memcpy(e->bytes, now + i, end - i);
        changed = true;
    }
    memcpy(film.now, now, film.len);
    return changed;
}

/* While the machine is stopped, no CPU can be asked where it is. If a debugger has stopped
 * it, there is nothing to wait for either.
 */
static void film_wait(void)
{
    uint64_t end = clock_ns() + film.wait_ns;

    refill();
    if (cpu_context() == CTX_HELD)
        return;
    while (clock_ns() < end) {
        if (!stop_machine_running())
            scene_look();
        clock_spin_ns(LOOK_NS);
    }
}

static void note_answers(const struct text_phase *p)
{
    for (unsigned cpu = 0; cpu < p->cpus; cpu++) {
        struct film_note *e = film_claim(FILM_ACK, cpu, p->first);

        e->halted = p->answered[cpu] == TEXT_PHASE_HALTED;
        e->ns = e->halted ? film.asked_ns : p->ns + p->answered[cpu];
    }
}

/* on_phase - note a phase. This function is called after the stores (p->cpus is 0), and
 * after all CPUs have answered. If the stores have not changed the filmed bytes, neither
 * the phase nor the answers are on the film.
 */
static void on_phase(const struct text_phase *p)
{
    if (!p->cpus) {
        film.changed = note_stores(p->ns);
        if (!film.changed)
            return;
        film_wait();
        film_note(FILM_SYNC, cpu_id(), film.addr);
        film.asked_ns = clock_ns() + 1;
    } else if (film.changed) {
        note_answers(p);
        film_wait();
    }
}

/* ---- begin and end --------------------------------------------------------------------- */

/* film_measure - find the bytes and the instructions to film, which are those below the
 * probes that are there now. Return: 0; a negative errno: there is no instruction.
 */
static int film_measure(uintptr_t addr)
{
    size_t count = 0;

    film.addr = addr;
    film.len = 0;
    memset(film.lens, 0, sizeof(film.lens));
    while (film.len < INSN_JMP32_LEN) {
        uint8_t bytes[INSN_MAX_LEN];
        struct insn insn;

        if (recover_bytes(bytes, addr + film.len, sizeof(bytes)) ||
            insn_decode(&insn, bytes, sizeof(bytes), addr + film.len))
            return -EINVAL;
        film.lens[count++] = insn.len;
        film.len += insn.len;
    }
    return plat_text_read(film.now, addr, film.len);
}

COLD static int film_arm(uintptr_t addr, unsigned ms)
{
    if (film.on)
        return -EBUSY;
    if (film_measure(addr))
        return -EINVAL;
    if (!film.events)
        film.events = kzalloc((EVENTS_MAX + 1) * sizeof(film.events[0]));
    if (!film.events)
        return -ENOMEM;
    memcpy(film.first, film.now, sizeof(film.first));
    film.count = 0;
    film.ms = ms;
    film.wait_ns = ms * UINT64_C(1000000);
    film.changed = false;
    film.on = true;
    refill();
    text_phases_watch(on_phase);
    return 0;
}

/* Two consoles may begin and end films at the same time: one waits for the other. */
static struct mutex one_at_a_time = MUTEX_INIT(one_at_a_time);

static int film_end_now(void)
{
    bool was_on;

    plat_lock(PLAT_TEXT);
    was_on = film.on;
    film.on = false;
    text_phases_watch(NULL);
    plat_unlock(PLAT_TEXT);
    if (!was_on)
        return -ENOENT;
    scene_close();
    return 0;
}

static int film_begin_now(uintptr_t addr, unsigned ms)
{
    int err;

    plat_lock(PLAT_PROBES); /* for recover_bytes() */
    plat_lock(PLAT_TEXT);
    err = film_arm(addr, ms);
    plat_unlock(PLAT_TEXT);
    plat_unlock(PLAT_PROBES);
    if (err)
        return err;
    err = scene_open(addr);
    if (err)
        film_end_now();
    return err;
}

COLD int film_start(uintptr_t addr, unsigned ms)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    mutex_lock(&one_at_a_time);
    err = film_begin_now(addr, ms);
    mutex_unlock(&one_at_a_time);
    return err;
}

int film_stop(void)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    mutex_lock(&one_at_a_time);
    err = film_end_now();
    mutex_unlock(&one_at_a_time);
    return err;
}

/* ---- the text -------------------------------------------------------------------------- */

COLD static int by_time(const void *a, const void *b)
{
    const struct film_note *x = a, *y = b;

    return (x->ns > y->ns) - (x->ns < y->ns);
}

static void film_print_place(struct seq *out, uintptr_t at)
{
    char text[PLACE_TEXT_MAX];

    seq_puts(out, place_text(text, at));
}

static void print_hex(struct seq *out, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        seq_printf(out, "%s%02x", i ? " " : "", bytes[i]);
}

static void print_film_head(struct seq *out)
{
    seq_printf(out, "{\"film\":1,\"cpus\":%u,\"ms\":%u,\"at\":\"", cpu_count(), film.ms);
    film_print_place(out, film.addr);
    seq_puts(out, "\",\"bytes\":\"");
    print_hex(out, film.first, film.len);
    seq_puts(out, "\",\"lengths\":[");
    for (size_t i = 0; film.lens[i]; i++)
        seq_printf(out, "%s%u", i ? "," : "", film.lens[i]);
    seq_puts(out, "]}\n");
}

COLD static void print_event(struct seq *out, const struct film_note *e)
{
    static const char *const names[] = {
        [FILM_STORE] = "store", [FILM_SYNC] = "sync", [FILM_ACK] = "ack",
        [FILM_TRAP] = "trap",   [FILM_COPY] = "copy", [FILM_BACK] = "back",
    };

    seq_printf(out, "{\"t\":%lu,\"cpu\":%u,\"ev\":\"%s\",\"at\":\"", e->ns, e->cpu,
               names[e->kind]);
    film_print_place(out, e->at);
    seq_puts(out, "\"");
    if (e->len) {
        seq_puts(out, ",\"bytes\":\"");
        print_hex(out, e->bytes, e->len);
        seq_puts(out, "\"");
    }
    seq_printf(out, "%s}\n", e->halted ? ",\"halted\":true" : "");
}

COLD unsigned film_print(struct seq *out)
{
    unsigned count = film.count < EVENTS_MAX ? film.count : EVENTS_MAX;

    if (!film.events)
        return 0;
    plat_lock(PLAT_TEXT);
    qsort(film.events, count, sizeof(film.events[0]), by_time);
    print_film_head(out);
    for (unsigned i = 0; i < count; i++)
        print_event(out, &film.events[i]);
    plat_unlock(PLAT_TEXT);
    return film.count - count;
}

/* gdb_collect.c - collects at the hit of a tracepoint: condition, actions, a frame in the
 * ring.
 *
 *   1. Interrupts are off. So each CPU has at most one collection in a thread or an
 *      interrupt, and one in an NMI on top of it. If an NMI is to stop the CPU, it is
 *      sent again when the collection has ended.
 *   2. The code that collects may itself hit a tracepoint. Such a hit collects nothing,
 *      and is counted as a recursion.
 *   3. The condition is checked, then the actions are carried out in their order. A
 *      program that faults ends there; the frame keeps what was collected before.
 *   4. A frame of nothing but registers is written into the ring directly. Any other
 *      frame is put together in a buffer of this CPU (part), and goes to the ring in
 *      records of at most PART_MAX bytes of blocks.
 */
#include "probes/gdb/gdb_collect.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "probes/agent/agent.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_stepping.h"
#include "probes/gdb/gdb_tracepoint.h"

#include <string.h>

#define PART_MAX 4000 /* bytes of blocks in one record */
#define REGS_BLOCK (1 + sizeof(struct pt_regs))
#define LEVELS 2 /* 0: threads and interrupts; 1: NMIs */

_Static_assert(sizeof(struct gdb_record) + PART_MAX <= RING_EVENT_MAX,
               "a part is a record");

/* What a CPU has for collecting. */
struct collector {
    bool is_busy[LEVELS];
    bool nmi_waits;
    uint32_t next_id;
    uint8_t part[LEVELS][PART_MAX];
};

/* A frame that is being made. */
struct collecting {
    struct gdb_tracepoint *tp;
    const struct pt_regs *regs;
    uintptr_t ip; /* of the program */
    struct gdb_record record;
    uint8_t *part;
    size_t total, most; /* bytes of blocks so far, and at most */
    bool is_lost;
    const struct gdb_variable *read; /* what a program has read last, or NULL */
    int64_t read_value;
};

struct gdb_rings gdb_frames;
struct gdb_trace_state gdb_trace_state;
static struct collector *collectors[MAX_CPUS];

INIT bool gdb_collect_init(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        collectors[cpu] = kzalloc(sizeof(struct collector));
        if (!collectors[cpu])
            return false;
    }
    return true;
}

void gdb_collect_loss(enum gdb_loss cause)
{
    __atomic_fetch_add(&gdb_trace_state.lost[cause], 1, __ATOMIC_RELAXED);
}

void gdb_collect_end(enum gdb_trace_end why, unsigned number)
{
    if (!__atomic_exchange_n(&gdb_trace_state.runs, false, __ATOMIC_ACQ_REL))
        return;
    gdb_trace_state.end = why;
    gdb_trace_state.end_number = number;
}

/* ---- records ---- */

/* record_start - begin a record with @len bytes of blocks. Return: where they go; NULL:
 * there is no room.
 */
static uint8_t *record_start(struct collecting *m, size_t len)
{
    size_t size = sizeof(m->record) + len;
    struct gdb_record *record = NULL;
    uint64_t used = __atomic_add_fetch(&gdb_trace_state.used, size, __ATOMIC_RELAXED);

    if (gdb_trace_state.is_circular || used <= gdb_trace_state.limit)
        record = gdb_rings_write(&gdb_frames, size);
    if (!record) {
        gdb_collect_loss(GDB_LOST_FULL);
        gdb_collect_end(GDB_TRACE_FULL, 0);
        return NULL;
    }
    m->record.len = (uint32_t)len;
    __builtin_memcpy(record, &m->record, sizeof(m->record));
    __atomic_fetch_add(&m->tp->bytes, size, __ATOMIC_RELAXED);
    return (uint8_t *)(record + 1);
}

/* send_part - write the part into the ring, as a record. */
static void send_part(struct collecting *m, bool ends)
{
    uint8_t *to = NULL;

    m->record.ends = ends;
    if (!m->is_lost)
        to = record_start(m, m->record.len);
    if (!to) {
        m->is_lost = true;
        m->record.len = 0;
        return;
    }
    memcpy(to, m->part, m->record.len);
    gdb_rings_commit(&gdb_frames);
    m->record.begins = false;
    m->record.len = 0;
}

/* room_for - make room in the part for a block. Return: where its @len bytes go; NULL:
 * the frame is full.
 */
static uint8_t *room_for(struct collecting *m, size_t len)
{
    uint8_t *at;

    if (m->total + len > m->most) {
        gdb_collect_loss(GDB_LOST_CUT);
        return NULL;
    }
    if (m->record.len + len > PART_MAX)
        send_part(m, false);
    at = m->part + m->record.len;
    m->record.len += (uint32_t)len;
    m->total += len;
    return at;
}

/* ---- blocks ---- */

/* put_registers - write a block of registers. The compiler makes the copies itself: calls
 * of memcpy() took half of the instructions for such a frame.
 */
static void put_registers(uint8_t *at, const struct collecting *m)
{
    *at = 'R';
    __builtin_memcpy(at + 1, m->regs, sizeof(*m->regs));
    __builtin_memcpy(at + 1 + offsetof(struct pt_regs, ip), &m->ip, sizeof(m->ip));
}

/* put_piece - write a block of memory that fits into one part. Return: false: the memory
 * cannot be read.
 */
static bool put_piece(uint8_t *at, uintptr_t addr, uint16_t len)
{
    *at = 'M';
    memcpy(at + 1, &addr, sizeof(addr));
    memcpy(at + 9, &len, sizeof(len));
    return gdb_memory_read(at + GDB_BLOCK_M, addr, len) == len;
}

static size_t piece_len(const struct collecting *m, uintptr_t addr, size_t len)
{
    size_t left = PART_MAX - m->record.len, page = 4096 - addr % 4096;

    if (left < GDB_BLOCK_M + 64)
        left = PART_MAX;
    left -= GDB_BLOCK_M;
    if (len > left)
        len = left;
    return len > page ? page : len;
}

/* Memory that cannot be read is missing in the frame, and is counted. */
static int collect_memory(void *arg, uintptr_t addr, size_t len)
{
    struct collecting *m = arg;

    while (len) {
        size_t n = piece_len(m, addr, len);
        uint8_t *at = room_for(m, GDB_BLOCK_M + n);

        if (!at)
            return 0;
        if (!put_piece(at, addr, (uint16_t)n)) {
            gdb_collect_loss(GDB_LOST_FAULT);
            m->record.len -= (uint32_t)(GDB_BLOCK_M + n);
            m->total -= GDB_BLOCK_M + n;
        }
        addr += n;
        len -= n;
    }
    return 0;
}

static int collect_by_number(void *arg, unsigned number)
{
    const struct gdb_variable *var = gdb_variable_of(number);
    struct collecting *m = arg;
    int64_t value;
    uint8_t *at;

    if (!var)
        return -ENOENT;
    value = READ_ONCE(var->value);
    at = room_for(m, GDB_BLOCK_V);
    if (!at)
        return 0;
    *at = 'V';
    memcpy(at + 1, &number, 4);
    memcpy(at + 5, &value, 8);
    return 0;
}

/* ---- programs ---- */

static int collect_read(void *unused, void *dst, uintptr_t addr, size_t len)
{
    (void)unused;
    return copy_nofault(dst, (const void *)addr, len);
}

/* collect_any_variable - read or set a trace variable. `$n = $n + 1` may run on several
 * CPUs at once. So if a program reads a variable and then sets it, the difference is
 * added, atomically.
 */
static int collect_any_variable(void *arg, unsigned number, bool set, int64_t *value)
{
    struct gdb_variable *var = gdb_variable_of(number);
    struct collecting *m = arg;

    if (!var)
        return -ENOENT;
    if (!set) {
        *value = m->read_value = READ_ONCE(var->value);
        m->read = var;
    } else if (m->read == var) {
        __atomic_fetch_add(&var->value, *value - m->read_value, __ATOMIC_RELAXED);
        m->read = NULL;
    } else {
        WRITE_ONCE(var->value, *value);
    }
    return 0;
}

static bool collect_holds(const struct gdb_tracepoint *tp, const struct pt_regs *regs)
{
    struct collecting m = { .read = NULL };
    struct agent_world world = { .regs = regs,
                                 .ip = tp->addr,
                                 .arg = &m,
                                 .read = collect_read,
                                 .var = collect_any_variable };
    uint64_t value = 0;

    if (agent_run(tp->condition, &world, &value, NULL))
        gdb_collect_loss(GDB_LOST_FAULT);
    return value;
}

static void run_code(struct collecting *m, const uint8_t *code)
{
    struct agent_world world = { .regs = m->regs,
                                 .ip = m->ip,
                                 .arg = m,
                                 .read = collect_read,
                                 .var = collect_any_variable,
                                 .collect = collect_memory,
                                 .collect_var = collect_by_number };

    m->read = NULL;
    if (agent_run(code, &world, NULL, NULL))
        gdb_collect_loss(GDB_LOST_FAULT);
}

/* ---- frames ---- */

static void collect_action(struct collecting *m, const struct gdb_action *action)
{
    struct agent_world world = { .regs = m->regs, .ip = m->ip };
    uintptr_t addr = action->offset;
    uint8_t *at;

    switch (action->kind) {
    case GDB_REGISTERS:
        at = room_for(m, REGS_BLOCK);
        if (at)
            put_registers(at, m);
        break;
    case GDB_MEMORY:
        if (action->base >= 0)
            addr += agent_register(&world, (unsigned)action->base);
        collect_memory(m, addr, action->len);
        break;
    default:
        run_code(m, action->code);
    }
}

static void make_registers(struct collecting *m)
{
    uint8_t *to;

    m->record.ends = true;
    to = record_start(m, REGS_BLOCK);
    if (!to)
        return;
    put_registers(to, m);
    gdb_rings_commit(&gdb_frames);
}

/* collect_frame - begin a frame of @tp, where the program is at @ip: at the tracepoint, or
 * behind a step. Only what is read is set: to clear all of @m takes 20 instructions.
 */
static void collect_frame(struct collecting *m, struct collector *c,
                          struct gdb_tracepoint *tp, const struct pt_regs *regs,
                          uintptr_t ip)
{
    m->tp = tp;
    m->regs = regs;
    m->ip = ip;
    m->record.id = c->next_id++;
    m->record.number = (uint16_t)tp->number;
    m->record.begins = true;
    m->record.addr = ip;
    m->record.len = 0;
    m->is_lost = false;
}

static void fill_frame(struct collecting *m, struct collector *c, unsigned level,
                       const struct gdb_action *actions)
{
    m->part = c->part[level];
    m->total = 0;
    m->most = level ? PART_MAX : GDB_FRAME_MAX;
    for (const struct gdb_action *a = actions; a; a = a->next)
        collect_action(m, a);
    send_part(m, true);
}

static void make_frame(struct collector *c, struct gdb_tracepoint *tp,
                       struct pt_regs *regs, unsigned level)
{
    uint64_t hits = __atomic_add_fetch(&tp->hits, 1, __ATOMIC_RELAXED);
    struct collecting m;

    if (tp->pass && hits > tp->pass) { /* another CPU has just made the last one */
        __atomic_fetch_sub(&tp->hits, 1, __ATOMIC_RELAXED);
        return;
    }
    collect_frame(&m, c, tp, regs, tp->addr);
    if (tp->only_registers)
        make_registers(&m);
    else
        fill_frame(&m, c, level, tp->actions);
    __atomic_fetch_add(&gdb_trace_state.created, 1, __ATOMIC_RELAXED);
    if (tp->steps)
        gdb_stepping_begin(tp, regs);
    if (hits == tp->pass)
        gdb_collect_end(GDB_TRACE_PASSED, tp->number);
}

static void make_frames(struct collector *c, struct gdb_tracepoint *tp,
                        struct pt_regs *regs, unsigned level)
{
    for (; tp && READ_ONCE(gdb_trace_state.runs); tp = tp->next)
        if (READ_ONCE(tp->is_enabled) && (!tp->condition || collect_holds(tp, regs)))
            make_frame(c, tp, regs, level);
}

/* ---- a hit ---- */

bool gdb_collect_is_busy(void)
{
    const struct collector *c = collectors[cpu_id()];

    return c && (c->is_busy[0] || c->is_busy[1]);
}

bool gdb_collect_defers(void)
{
    bool is_busy = gdb_collect_is_busy();

    if (is_busy)
        collectors[cpu_id()]->nmi_waits = true;
    return is_busy;
}

/* collect_enter - begin to collect on this CPU. Return: false: it does so already.
 * collect_leave - end, and let an NMI come that has waited.
 */
static bool collect_enter(struct collector *c, unsigned level)
{
    if (c->is_busy[level]) {
        gdb_collect_loss(GDB_LOST_RECURSION);
        return false;
    }
    c->is_busy[level] = true;
    barrier();
    return true;
}

static void collect_leave(struct collector *c, unsigned level)
{
    barrier();
    c->is_busy[level] = false;
    barrier();
    if (!level && READ_ONCE(c->nmi_waits)) {
        c->nmi_waits = false;
        lapic_send(this_cpu()->apic_id, LAPIC_NMI);
    }
}

void gdb_collect(struct gdb_tracepoint *tp, struct pt_regs *regs)
{
    unsigned long flags = irq_save();
    struct collector *c = collectors[cpu_id()];
    unsigned level = cpu_context() == CTX_NMI;

    if (collect_enter(c, level)) {
        make_frames(c, tp, regs, level);
        collect_leave(c, level);
    }
    irq_restore(flags);
}

void gdb_collect_step(struct gdb_tracepoint *tp, const struct pt_regs *regs, uintptr_t ip)
{
    struct collector *c = collectors[cpu_id()];
    struct collecting m;

    if (!collect_enter(c, 0))
        return;
    collect_frame(&m, c, tp, regs, ip);
    fill_frame(&m, c, 0, tp->step_actions);
    __atomic_fetch_add(&gdb_trace_state.created, 1, __ATOMIC_RELAXED);
    collect_leave(c, 0);
}

/* gdb_tracepoint.h - what tracepoints are, between the files that define them, collect for
 * them, and show what was collected.
 */
#pragma once

#include "kernel/base/regs.h"
#include "kernel/gdb/gdb_rings.h"
#include "kernel/gdb/gdb_session.h"

#include <stdint.h>

#define GDB_FRAME_MAX 32768 /* bytes of blocks of one frame */
#define MAX_CPUS_TRACED 16  /* on a machine that has more there are no tracepoints */

/* A part of what a tracepoint collects. Immutable while it is enabled. */
struct gdb_action {
    struct gdb_action *next;
    enum { GDB_REGISTERS, GDB_MEMORY, GDB_CODE } kind;
    int base; /* GDB_MEMORY: the register that @offset is added to; -1: none */
    uint64_t offset, len;
    const uint8_t *code; /* GDB_CODE: verified */
    const char *text;    /* as it came, for a debugger that asks */
    size_t text_len;
};

/* Locks:  s while serving   a atomic, by hits   I immutable while it can be hit */
struct gdb_tracepoint {
    unsigned number;
    uintptr_t addr;
    bool is_enabled;          /* [s] read by hits */
    uint64_t pass;            /* [I] frames after which the trace ends; 0: never */
    uint64_t fast;            /* [I] length of the instruction, as `ftrace` sends it; 0 */
    const uint8_t *condition; /* [I] NULL: none */
    size_t condition_len;     /* [I] */
    struct gdb_action *actions;  /* [I] */
    struct gdb_source *sources;  /* [s] */
    struct gdb_tracepoint *next; /* [I] at the same place */
    bool only_registers;         /* [I] */
    uint64_t hits;               /* [a] frames, whole or not */
    uint64_t bytes;              /* [a] that these took */
};

/* A trace state variable. */
struct gdb_variable {
    unsigned number;
    bool is_there;
    int64_t initial, value; /* value: atomic */
    bool builtin;
    char name[64]; /* hex digits */
};

#define GDB_VARIABLES_MAX 32
struct gdb_variable *gdb_variable_of(unsigned number); /* NULL: there is none */

/* What a frame has in the rings: one record, or several of one CPU with the same @id. */
struct gdb_record {
    uint32_t id;
    uint16_t number; /* of the tracepoint */
    uint8_t begins, ends;
    uint32_t len; /* of the blocks behind this */
    uint32_t unused;
    uintptr_t addr;
};

/* Blocks: R and a struct pt_regs; M, address, u16 length, bytes; V, u32 number, u64 value. */
#define GDB_BLOCK_M (1 + 8 + 2)
#define GDB_BLOCK_V (1 + 4 + 8)

extern struct gdb_rings gdb_frames;

/* ---- collecting: gdb_collect.c ---- */

enum gdb_loss {
    GDB_LOST_FULL,      /* no room in the ring, frames */
    GDB_LOST_RECURSION, /* hits of code that collects */
    GDB_LOST_CUT,       /* more than a frame may have, pieces */
    GDB_LOST_FAULT,     /* memory that cannot be read, or a division by zero, pieces */
    GDB_LOSSES,
};

enum gdb_trace_end {
    GDB_TRACE_NOT_RUN,
    GDB_TRACE_STOPPED, /* tstop */
    GDB_TRACE_FULL,
    GDB_TRACE_PASSED, /* a tracepoint has been hit as often as it was to be */
    GDB_TRACE_DISCONNECTED,
};

/* The trace that runs, or was the last one. */
struct gdb_trace_state {
    bool runs;        /* atomic */
    bool is_circular; /* [I] while it runs */
    uint64_t limit;   /* [I] bytes of all frames; if not circular */
    uint64_t keeps;   /* [I] circular: bytes of the latest frames that count; 0: all */
    uint64_t used, created; /* atomic: bytes, frames */
    enum gdb_trace_end end;
    unsigned end_number;       /* of the tracepoint, GDB_TRACE_PASSED */
    uint64_t lost[GDB_LOSSES]; /* atomic */
};

extern struct gdb_trace_state gdb_trace_state;

/* gdb_collect_init - Context: boot. Return: false: no memory. */
bool gdb_collect_init(void);

/* gdb_collect - a place was hit: make a frame for each of the tracepoints from @tp on whose
 * condition holds. Context: any, preemption off.
 */
void gdb_collect(struct gdb_tracepoint *tp, const struct pt_regs *regs);

/* gdb_collect_end - the trace ends, if it runs. Context: any. */
void gdb_collect_end(enum gdb_trace_end why, unsigned number);

/* ---- frames: gdb_frame.c ---- */

/* gdb_frame_count - that can be read. Context: serving. */
uint32_t gdb_frame_count(void);

/* gdb_frame_find - QTFrame.   gdb_frame_upload - qTBuffer.   gdb_frame_info - the memory and
 * the variables that the selected frame has, by @add. Context: serving.
 */
void gdb_frame_find(struct gdb_request *r);
void gdb_frame_upload(struct gdb_request *r);
void gdb_frame_info(void (*add)(void *arg, bool is_memory, uint64_t start, uint64_t len),
                    void *arg);

/* gdb_frame_variable - of the selected frame. Return: false: it was not collected. */
bool gdb_frame_variable(unsigned number, int64_t *value);

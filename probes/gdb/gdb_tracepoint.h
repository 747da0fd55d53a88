/* gdb_tracepoint.h - defines the data of tracepoints for the files that define them,
 * collect for them, and show what was collected.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/gdb/gdb_packet.h"
#include "probes/gdb/gdb_rings.h"

#include <stdint.h>

#define GDB_FRAME_MAX 32768 /* bytes of blocks in one frame */
#define MAX_CPUS_TRACED 16  /* with more CPUs gdb_trace_init() fails */

/* An action: a part of what a tracepoint collects. Immutable while a hit can find it. */
struct gdb_action {
    struct gdb_action *next;
    enum { GDB_REGISTERS, GDB_MEMORY, GDB_CODE } kind;
    int base; /* GDB_MEMORY: the register that @offset is added to; -1: none */
    uint64_t offset, len;
    const uint8_t *code; /* GDB_CODE: the program, verified */
    const char *text;    /* the action as it came, for a debugger that asks */
    size_t text_len;
};

/* Locks:  s written while serving   a atomic, written by hits   I immutable while hits
 *         find it
 */
struct gdb_tracepoint {
    unsigned number;
    uintptr_t addr;
    bool is_enabled; /* [s] read by hits */
    uint64_t pass;   /* [I] frames after which the trace ends; 0: never */
    uint64_t fast;   /* [I] bytes of the instruction, if `ftrace` has sent it; else 0 */
    const uint8_t *condition;        /* [I] NULL: none */
    size_t condition_len;            /* [I] */
    struct gdb_action *actions;      /* [I] */
    uint64_t steps;                  /* [I] instructions of `while-stepping`; 0: none */
    struct gdb_action *step_actions; /* [I] after each of them */
    bool steps_come;                 /* [s] the actions that come now are of steps */
    struct gdb_source *sources;      /* [s] */
    struct gdb_tracepoint *next;     /* [I] the next one at the same address */
    bool only_registers;             /* [I] */
    uint64_t hits;                   /* [a] frames, whole or not */
    uint64_t bytes;                  /* [a] of these frames in the rings */
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

/* The head of a record in the rings. A frame is one record, or several records of one CPU
 * with the same @id.
 */
struct gdb_record {
    uint32_t id;
    uint16_t number; /* of the tracepoint */
    uint8_t begins, ends;
    uint32_t len; /* bytes of blocks behind this head */
    uint32_t unused;
    uintptr_t addr;
};

/* Each block begins with a letter. R: a struct pt_regs. M: u64 address, u16 length,
 * bytes. V: u32 number of a variable, u64 value.
 */
#define GDB_BLOCK_M (1 + 8 + 2)
#define GDB_BLOCK_V (1 + 4 + 8)

extern struct gdb_rings gdb_frames;

/* ---- collecting: gdb_collect.c ---- */

enum gdb_loss {
    GDB_LOST_FULL,      /* frames: no room in the ring */
    GDB_LOST_RECURSION, /* hits: of the code that collects */
    GDB_LOST_CUT,       /* pieces: the frame was full */
    GDB_LOST_FAULT,     /* pieces, conditions: unreadable memory, or a division by 0 */
    GDB_LOST_STEPS,     /* times that `while-stepping` had no steps, or not all */
    GDB_LOSSES,
};

enum gdb_trace_end {
    GDB_TRACE_NOT_RUN,
    GDB_TRACE_STOPPED, /* tstop */
    GDB_TRACE_FULL,
    GDB_TRACE_PASSED, /* a tracepoint has reached its pass count */
    GDB_TRACE_DISCONNECTED,
};

/* The trace that runs, or else the last trace. */
struct gdb_trace_state {
    bool runs;        /* atomic */
    bool is_circular; /* [I] while it runs */
    uint64_t limit;   /* [I] not circular: bytes of all frames at most */
    uint64_t keeps; /* [I] circular: bytes of the latest frames that are shown; 0: all */
    uint64_t used, created; /* atomic: bytes, frames */
    enum gdb_trace_end end;
    unsigned end_number;       /* GDB_TRACE_PASSED: number of the tracepoint */
    uint64_t lost[GDB_LOSSES]; /* atomic */
};

extern struct gdb_trace_state gdb_trace_state;

/* gdb_collect_init - allocate memory for collecting. Context: boot. Return: false: no
 * memory.
 */
bool gdb_collect_init(void);

/* gdb_collect - handle a hit of an address with tracepoints: make a frame for each
 * tracepoint of the list @tp that is enabled, if its condition holds or it has none.
 * Context: any, preemption off.
 */
void gdb_collect(struct gdb_tracepoint *tp, struct pt_regs *regs);

/* gdb_collect_step - make a frame after a step of `while-stepping`. @ip: of the program
 * gdb_collect_loss - count a loss. Context: any, preemption off.
 */
void gdb_collect_step(struct gdb_tracepoint *tp, const struct pt_regs *regs,
                      uintptr_t ip);
void gdb_collect_loss(enum gdb_loss cause);

/* gdb_collect_end - end the trace, if it runs. @number: of the tracepoint, for
 * GDB_TRACE_PASSED. Context: any.
 */
void gdb_collect_end(enum gdb_trace_end why, unsigned number);

/* ---- frames: gdb_frame.c ---- */

/* gdb_frame_count - count the frames that can be read. Context: held. */
uint32_t gdb_frame_count(void);

/* gdb_frame_find - answer QTFrame: select a frame.
 * gdb_frame_upload - answer qTBuffer: send a part of the frames, as a file.
 * gdb_frame_info - call @add for each piece of memory, and for each variable (@start is
 * its number), in the selected frame. Context: held.
 */
void gdb_frame_find(struct gdb_request *r);
void gdb_frame_upload(struct gdb_request *r);
void gdb_frame_info(void (*add)(void *arg, bool is_memory, uint64_t start, uint64_t len),
                    void *arg);

/* gdb_frame_variable - read a variable from the selected frame. Return: false: it was not
 * collected.
 */
bool gdb_frame_variable(unsigned number, int64_t *value);

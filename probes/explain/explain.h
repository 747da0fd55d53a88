/* explain.h - all that decides what becomes of an address: its bytes and whose they are,
 * the rules one by one, and the way its instruction is run, or would be.
 */
#pragma once

#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/platform.h"
#include "probes/explain/text_history.h"
#include "probes/insn/insn.h"
#include "probes/jump/detour.h"
#include "probes/jump/pun.h"
#include "probes/kprobe.h"

#define EXPLAIN_AROUND 4 /* instructions before the address, and behind it */
#define EXPLAIN_MAP (2 * EXPLAIN_AROUND + 1)

/* What a byte that is in the text now belongs to. */
enum explain_owner {
    OWNER_NOBODY,   /* there is no byte: it cannot be read */
    OWNER_ORIGINAL, /* it is as linked, as far as the engine knows */
    OWNER_ENGINE,   /* an int3 of the engine */
    OWNER_JUMP,     /* a jump of the engine */
    OWNER_OTHER,    /* an int3 that is not the engine's */
};

struct explain_byte {
    enum explain_owner owner;
    uint8_t now;      /* what a CPU fetches there */
    uint8_t original; /* without the engine */
    uintptr_t jump;   /* OWNER_JUMP: the address of the jump */
    uintptr_t
        reader; /* a jump that has it in its displacement, without having written it;
                       * the first one, or 0 */
};

#define EXPLAIN_CHANGES 8

/* A cell, as it is or as it would be filled, from where it is entered on. */
struct explain_copy {
    const char *what; /* "boost", "step", "pair", "detour" */
    uintptr_t addr;
    size_t len;
    uint8_t code[INSN_SLOT_OWN_CODE_MAX];
};

/* What is there instead of the breakpoint, or could be. */
struct explain_jump {
    enum {
        JUMP_NONE,     /* for a reason */
        JUMP_OFF,      /* no site gets one now */
        JUMP_UNARMED,  /* all probes there are disabled */
        JUMP_SOON,     /* the optimizer has not looked at it yet */
        JUMP_IS_THERE, /* of the site that is there */
        JUMP_POSSIBLE, /* for a probe, if it came now */
    } state;
    enum probe_reason why; /* JUMP_NONE */
    bool by_region;        /* over several instructions; else by */
    enum pun_rung rung;
    uintptr_t pad;   /* 0: there is none on the way */
    bool is_evicted; /* no probe is here: it made room for another's jump */
};

struct explanation {
    uintptr_t addr;
    size_t byte_count; /* to the end of the instruction, or of the jump that is there */
    struct explain_byte bytes[INSN_MAX_LEN];
    size_t change_count; /* of these bytes, among the last TEXT_HISTORY_LEN of all text */
    struct text_change changes[EXPLAIN_CHANGES]; /* the last one first */

    bool in_function;
    struct plat_symbol function; /* the one around it */
    size_t map_count; /* its instructions around the address; none if unknown */
    size_t map_at;    /* the one that the address lies in; map_count: none */
    struct insn map[EXPLAIN_MAP];

    struct probe_reject why; /* the first broken rule; err 0: it accepts a probe */

    /* Only where err is 0: */
    bool is_probed; /* else what follows is how it would be */
    enum site_state state;
    enum site_way way;
    struct probe_reject
        post; /* of one that is not probed: why no post-handler, or err 0 */
    size_t copy_count;
    struct explain_copy copies[4];
    struct explain_jump jump;
    enum detour_kind detour; /* what a jump would run; for one that is not probed: with a
                              * probe that has a pre-handler */
    bool detour_specialized; /* its code is its own */
    bool linked;             /* it leads straight into the next one */
    bool flags_live;         /* there or behind it the program may read status flags */
    size_t probes, disabled, with_post;
    uint64_t hits, missed[MISS_CAUSES]; /* of the probes that are there now */
};

/* probe_explain - find out about @addr, any address.
 * @out:  filled
 * @rule: told of every rule of stage 2 that can be looked at, and of stage 3 when that
 *        refuses; in order, @why->err 0 where the rule is kept
 *
 * Context: thread.  Locks: takes PLAT_PROBES, held while @rule is called.
 */
void probe_explain(uintptr_t addr, struct explanation *out,
                   void (*rule)(enum probe_reason rule, const struct probe_reject *why,
                                void *arg),
                   void *arg);

/* explain_look_at_text - the part about bytes; the map is filled in.
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void explain_look_at_text(struct explanation *e);

/* explain_look_at_jump - the jump of @site, which is registered.
 * explain_try_jump - that of @site, which is not, and has a detour.
 * Locks: PLAT_PROBES held.
 */
void explain_look_at_jump(struct explain_jump *j, const struct site *site);
void explain_try_jump(struct explain_jump *j, struct site *site);

/* explain_rung - in one sentence, why a jump is of this kind. Context: any. */
const char *explain_rung(enum pun_rung rung);
/* explain_way - in one sentence, why an instruction is run this way. Context: any. */
const char *explain_way(enum site_way way);
/* explain_way_name - "boost", "emulate", and "step-int3" or "step-tf", as steps are done
 * now. Context: any.
 */
const char *explain_way_name(enum site_way way);

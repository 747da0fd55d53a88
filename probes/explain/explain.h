/* explain.h - all facts about an address that matter for a probe there: its bytes and which
 * code they belong to, the result of each rule, and the way in which its instruction is
 * run, or would be run.
 */
#pragma once

#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/platform.h"
#include "probes/insn/insn.h"
#include "probes/jump/detour.h"
#include "probes/jump/pun.h"
#include "probes/kprobe.h"
#include "probes/text/text_history.h"

#define EXPLAIN_AROUND 4 /* instructions before the address, and behind it */
#define EXPLAIN_MAP (2 * EXPLAIN_AROUND + 1)

/* To what a byte of the text belongs now. */
enum explain_owner {
    OWNER_NOBODY,   /* there is no byte: it cannot be read */
    OWNER_ORIGINAL, /* the byte of the build, as far as the engine knows */
    OWNER_ENGINE,   /* an int3 of the engine */
    OWNER_JUMP,     /* a jump of the engine */
    OWNER_OTHER,    /* an int3 that is not the engine's */
};

struct explain_byte {
    enum explain_owner owner;
    uint8_t now;      /* the byte that a CPU fetches */
    uint8_t original; /* the byte that would be there without the engine */
    uintptr_t jump;   /* OWNER_JUMP: the address of the jump */
    uintptr_t reader; /* the first jump that reads this byte but has not written it */
};

#define EXPLAIN_CHANGES 8

/* The code in a cell, from the place where CPUs enter it: the code of a site, or the code
 * that a site would get.
 */
struct explain_copy {
    const char *what; /* "boost", "step", "pair", "detour" */
    uintptr_t addr;
    size_t len;
    uint8_t code[INSN_SLOT_DETOUR_CODE_MAX];
};

/* The jump that is in the text in place of the breakpoint, or that could be there. */
struct explain_jump {
    enum {
        JUMP_NONE,     /* the site gets no jump; @why is the reason */
        JUMP_OFF,      /* jumps are switched off: no site gets one now */
        JUMP_UNARMED,  /* all probes of the site are disabled */
        JUMP_SOON,     /* the optimizer has not looked at the site yet */
        JUMP_IS_THERE, /* the site has a jump */
        JUMP_POSSIBLE, /* no site is here; a probe registered now would get a jump */
    } state;
    enum probe_reason why; /* JUMP_NONE */
    bool by_region;        /* the jump displaces several instructions; else see @rung */
    enum pun_rung rung;
    uintptr_t pad;   /* the pad that the jump goes through; 0: it goes through none */
    bool is_evicted; /* no probe is here: the instruction gave way to another jump */
};

struct explanation {
    uintptr_t addr;
    size_t byte_count; /* to the end of the instruction, or of the jump that is there */
    struct explain_byte bytes[INSN_MAX_LEN];
    size_t change_count; /* of these bytes, among the last TEXT_HISTORY_LEN changes */
    struct text_change changes[EXPLAIN_CHANGES]; /* the latest change first */

    bool in_function;
    struct plat_symbol function; /* the function around the address */
    size_t map_count; /* how many instructions are in @map; 0: they are not known */
    size_t map_at;    /* index of the instruction at the address; map_count: none */
    struct insn map[EXPLAIN_MAP];

    struct probe_reject why; /* the first broken rule; err 0: a probe is accepted */

    /* Only where err is 0: */
    bool is_probed; /* false: the fields below say what a probe here would get */
    enum site_state state;
    enum site_way way;
    struct probe_reject post; /* if not probed: why a post-handler is refused, or err 0 */
    size_t copy_count;
    struct explain_copy copies[4];
    struct explain_jump jump;
    enum detour_kind detour; /* the detour that the jump leads to; if no probe is here:
                              * the one that a probe with a pre-handler would get */
    bool detour_specialized; /* the detour's code was made for this site alone */
    bool
        detour_no_image; /* of DETOUR_CALL: the handler's code shows that it needs none */
    bool linked;         /* the detour ends with a link to the next site's detour */
    bool flags_live;     /* from here on the program may read status flags before it
                              * writes them, so a detour has to preserve them */
    size_t probes, disabled, with_post;
    uint64_t hits, missed[MISS_CAUSES]; /* of the probes that are there now */
};

/* probe_explain - find out all about @addr, which may be any address.
 * @out:  filled
 * @rule: called in order for each rule of stage 2 that can be checked, and for the rule
 *        of stage 3 if that stage refuses; @why->err is 0 when the rule is kept
 *
 * Context: thread or held.  Locks: takes PLAT_PROBES. It is held while @rule is called.
 */
void probe_explain(uintptr_t addr, struct explanation *out,
                   void (*rule)(enum probe_reason rule, const struct probe_reject *why,
                                void *arg),
                   void *arg);

/* explain_look_at_text - fill in the fields about bytes; the caller has filled in the
 * map. Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void explain_look_at_text(struct explanation *e);

/* explain_look_at_jump - fill @j with the jump of @site, which is registered.
 * explain_try_jump - fill @j with the jump that @site would get. The site is not
 * registered, but has a detour. Locks: PLAT_PROBES held.
 */
void explain_look_at_jump(struct explain_jump *j, const struct site *site);
void explain_try_jump(struct explain_jump *j, struct site *site);

/* explain_rung - one sentence that says why a jump is of the kind @rung. Context: any. */
const char *explain_rung(enum pun_rung rung);
/* explain_way - one sentence that says why an instruction is run in this way.
 * Context: any.
 */
const char *explain_way(enum site_way way);
/* explain_way_name - the name of @way: "boost", "emulate", "jump"; for a step "step-int3"
 * or "step-tf", by the trap that ends steps now. Context: any.
 */
const char *explain_way_name(enum site_way way);

/* commands_explain.h - what the files of `probe explain` have in common.
 *
 * Facts are noted while the engine is locked, and printed later.
 */
#pragma once

#include "kernel/console/shell.h"
#include "probes/core/reject.h"
#include "probes/explain/explain.h"
#include "probes/insn/insn.h"
#include "probes/region/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLAIN_RULES_MAX 32

struct explain_rules {
    struct {
        enum probe_reason reason;
        struct probe_reject why; /* err 0: it is kept */
    } rule[EXPLAIN_RULES_MAX];
    size_t count;
};

/* explain_note_rule - append to the struct explain_rules @arg. A rule that does not fit is
 * lost.
 * explain_print_rules - a line for each, behind @head.
 */
void explain_note_rule(enum probe_reason rule, const struct probe_reject *why, void *arg);
void explain_print_rules(struct shell *sh, const char *head,
                         const struct explain_rules *rules);

/* explain_print_bytes - those of @insn, padded, so that what follows is in columns.
 * explain_print_insn - a line about it, behind @mark.
 */
void explain_print_bytes(struct shell *sh, const struct insn *insn);
void explain_print_insn(struct shell *sh, const char *mark, const struct insn *insn);

/* explain_print_text - the bytes, whose they are, and what was done to them. */
void explain_print_text(struct shell *sh, const struct explanation *e);

/* explain_print_cost - what a hit costs, measured while the caller waits.
 * Context: thread, none of the engine's locks held.
 */
void explain_print_cost(struct shell *sh, const struct explanation *e);

/* What there is to say about one jump over several instructions. */
struct explain_region {
    struct region plan;         /* as far as the rules allow */
    struct explain_rules rules; /* of region.c */
    bool is_open;               /* its jump is in the text, or is about to be */
    char lines[REGION_LINES_MAX][REGION_LINE_MAX]; /* the picture */
    size_t line_count;
};

/* explain_look_at_region - of an insertion address @addr, any address. @out: zeroed.
 * Locks: takes PLAT_PROBES.
 * explain_print_region - all of it. @why: why there can be no probe at all, or err 0
 */
void explain_look_at_region(struct explain_region *out, uintptr_t addr);
void explain_print_region(struct shell *sh, const struct explain_region *r,
                          const struct probe_reject *why);

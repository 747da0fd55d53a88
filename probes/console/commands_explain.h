/* commands_explain.h - declares what the files of `probe explain` share.
 *
 * These functions note facts while the engine is locked, and print them later.
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
        struct probe_reject why; /* err 0: the rule is kept */
    } rule[EXPLAIN_RULES_MAX];
    size_t count;
};

/* explain_note_rule - append the result of one rule to the struct explain_rules @arg. A
 * result for which there is no room is dropped.
 * explain_print_rules - print a line for each rule, with @head in front.
 */
void explain_note_rule(enum probe_reason rule, const struct probe_reject *why, void *arg);
void explain_print_rules(struct shell *sh, const char *head,
                         const struct explain_rules *rules);

/* explain_print_insn - print a line about @insn, with @mark in front. */
void explain_print_insn(struct shell *sh, const char *mark, const struct insn *insn);

/* explain_print_owners - print the bytes, and the owner of each byte.
 * explain_print_changes - print the latest changes of these bytes.
 */
void explain_print_owners(struct shell *sh, const struct explanation *e);
void explain_print_changes(struct shell *sh, const struct explanation *e);

/* explain_print_cost - measure what a hit costs, and print it. The caller waits
 * meanwhile. Context: thread or held. None of the engine's locks is held.
 */
void explain_print_cost(struct shell *sh, const struct explanation *e);

/* All facts about a jump that would displace several instructions. */
struct explain_region {
    struct region plan;         /* the plan, filled as far as the rules allow */
    struct explain_rules rules; /* the results of the rules of region.c */
    bool is_open;               /* the jump is in the text, or is about to be */
    char lines[REGION_LINES_MAX][REGION_LINE_MAX]; /* the picture of region_draw() */
    size_t line_count;
};

/* explain_look_at_region - fill @out for the insertion address @addr, which may be any
 * address.
 * @out: zeroed by the caller
 * Locks: takes PLAT_PROBES.
 * explain_print_region - print all that @r holds.
 * @why: why the address cannot carry a probe at all, or err 0
 */
void explain_look_at_region(struct explain_region *out, uintptr_t addr);
void explain_print_region(struct shell *sh, const struct explain_region *r,
                          const struct probe_reject *why);

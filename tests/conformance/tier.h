/* tier.h - the oracle: a group of fixtures must come out the same without a probe and with
 * one, in every way in which the engine can run the instruction; and with handlers that
 * interfere, as they wanted it (pass.h).
 */
#pragma once

#include "tests/conformance/pass.h"
#include "tests/conformance/vary.h"

struct group {
    const char *name;
    const struct fixture *rows, *rows_end;
    vary_fn vary;
    unsigned ignored; /* bit n: general register n differs from run to run */
    bool no_post;     /* no post-handler is allowed: boost only */
};

/* Declares the table that fixture.inc has made of group @name. */
#define FIXTURES(name)                                                                   \
    extern const struct fixture fixtures_##name[], fixtures_##name##_end[]
/* GROUP(table, family, ...) - for an initialiser of struct group: what else there is. */
#define GROUP(table, family, ...)                                                        \
    {                                                                                    \
        .name = #table, .rows = fixtures_##table, .rows_end = fixtures_##table##_end,    \
        .vary = vary_##family, __VA_ARGS__                                               \
    }

/* tier_test - try @group, and report a fact for each pass. Context: thread. */
void tier_test(const struct group *group);

/* ---- what was tried so far ---- */

enum cell { CELL_NONE, CELL_SAME, CELL_DIFFERENT };

/* tier_cell - how instructions of @class fared in @tier. */
enum cell tier_cell(enum insn_class class, enum tier tier);
const char *tier_name(enum tier tier);

/* tier_refused - how often a fixture was no jump, for @why. */
unsigned tier_refused(enum probe_reason why);

/* tier_ran_class, _kind, _op, _form - has such an instruction been executed, and not just
 * raised #UD? @op, @form: of struct insn
 */
bool tier_ran_class(enum insn_class class);
bool tier_ran_kind(enum insn_kind kind);
bool tier_ran_op(unsigned op);
bool tier_ran_form(unsigned form);

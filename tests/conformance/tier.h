/* tier.h - the oracle: the fixtures of a group must have the same outcome without a probe
 * and with a probe, in every way in which the engine can run the instruction. With
 * handlers that change the program, the outcome must have exactly these changes (pass.h).
 */
#pragma once

#include "tests/conformance/pass.h"
#include "tests/conformance/vary.h"

struct group {
    const char *name;
    const struct fixture *rows, *rows_end;
    vary_fn vary;
    unsigned ignored; /* bit n: general register n differs from run to run */
    bool no_post;     /* they allow no post-handler, so they are only boosted */
};

/* FIXTURES - declare the table that fixture.inc has made of group @name. */
#define FIXTURES(name)                                                                   \
    extern const struct fixture fixtures_##name[], fixtures_##name##_end[]
/* GROUP - an initialiser of struct group. Further arguments set its other fields. */
#define GROUP(table, family, ...)                                                        \
    {                                                                                    \
        .name = #table, .rows = fixtures_##table, .rows_end = fixtures_##table##_end,    \
        .vary = vary_##family, __VA_ARGS__                                               \
    }

/* tier_test - try @group in all passes, and report a fact for each pass. Context: thread.
 */
void tier_test(const struct group *group);

/* ---- what was tried so far ---- */

enum cell { CELL_NONE, CELL_SAME, CELL_DIFFERENT };

/* tier_cell - return whether the instructions of @class had the same outcomes in @tier.
 * CELL_NONE: none was tried.
 * tier_name - return the name of @tier.
 */
enum cell tier_cell(enum insn_class class, enum tier tier);
const char *tier_name(enum tier tier);

/* tier_refused - return how often a fixture was no jump because of @why. */
unsigned tier_refused(enum probe_reason why);

/* tier_ran_class, _kind, _op, _form - was such an instruction executed? One that has only
 * raised #UD was not. @op, @form: as in struct insn
 */
bool tier_ran_class(enum insn_class class);
bool tier_ran_kind(enum insn_kind kind);
bool tier_ran_op(unsigned op);
bool tier_ran_form(unsigned form);

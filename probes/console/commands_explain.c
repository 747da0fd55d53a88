/* commands_explain.c - `probe explain`: prints which probe an address has or can carry;
 * with -v everything that decides this.
 */
#include "probes/console/commands_explain.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "probes/console/commands.h"
#include "probes/console/commands_watch.h"
#include "probes/console/console_probe.h"
#include "probes/explain/explain.h"
#include "probes/insn/mnemonic.h"

#include <stdio.h>
#include <string.h>

struct report {
    struct shell *sh;
    bool is_long; /* -v */
    struct explanation e;
    struct explain_rules rules;
    struct explain_region region;
};

/* ---- the address, its byte, its surroundings ---- */

static void print_address(const struct report *r)
{
    char at[PLACE_TEXT_MAX];

    shell_printf(r->sh, "address    0x%lx, %s\n", r->e.addr, place_text(at, r->e.addr));
    if (!r->is_long)
        return;
    if (r->e.in_function)
        shell_printf(r->sh, "function   %s, 0x%zx bytes from 0x%lx\n", r->e.function.name,
                     r->e.function.size, r->e.function.start);
    else
        shell_printf(r->sh, "function   none\n");
}

static void print_inlined_line(void *arg, const char *text)
{
    shell_printf(arg, "           %s\n", text);
}

static void print_inlined_at(const struct report *r, const struct place *place)
{
    size_t count = place_inlined(place);

    if (!count)
        return;
    shell_printf(r->sh, "inlined    at %zu more place%s\n", count, count == 1 ? "" : "s");
    place_list_inlined(place, count, print_inlined_line, r->sh);
}

/* explain_print_bytes - print the bytes of @insn, padded so that the text behind them is
 * in columns.
 */
static void explain_print_bytes(struct shell *sh, const struct insn *insn)
{
    for (size_t i = 0; i < INSN_MAX_LEN; i++) {
        if (i < insn->len)
            shell_printf(sh, "%02x ", insn->bytes[i]);
        else if (i < 8)
            shell_printf(sh, "   ");
    }
}

/* insn_name - write the mnemonic, or the class in parentheses if there is no mnemonic. */
static const char *insn_name(char text[INSN_MNEMONIC_MAX], const struct insn *insn)
{
    if (!insn_mnemonic(text, insn))
        snprintf(text, INSN_MNEMONIC_MAX, "(%s)", insn_class_name(insn->class));
    return text;
}

void explain_print_insn(struct shell *sh, const char *mark, const struct insn *insn)
{
    char at[PLACE_TEXT_MAX], text[INSN_MNEMONIC_MAX];

    shell_printf(sh, "%s 0x%lx  ", mark, insn->addr);
    explain_print_bytes(sh, insn);
    shell_printf(sh, " %2u %-12s %-10s %-6s %s\n", insn->len, insn_name(text, insn),
                 insn_kind_name(insn->kind), insn_class_name(insn->class),
                 place_text(at, insn->addr));
}

static void print_map(const struct report *r)
{
    for (size_t i = 0; i < r->e.map_count; i++)
        explain_print_insn(r->sh, i == r->e.map_at ? "        ->" : "          ",
                           &r->e.map[i]);
}

/* ---- the rules ---- */

void explain_note_rule(enum probe_reason rule, const struct probe_reject *why, void *arg)
{
    struct explain_rules *rules = arg;

    if (rules->count == EXPLAIN_RULES_MAX)
        return;
    rules->rule[rules->count].reason = rule;
    rules->rule[rules->count++].why = *why;
}

void explain_print_rules(struct shell *sh, const char *head,
                         const struct explain_rules *rules)
{
    char at[PLACE_TEXT_MAX];

    for (size_t i = 0; i < rules->count; i++) {
        const struct probe_reject *why = &rules->rule[i].why;

        shell_printf(sh, "%-10s %s %-14s", head, why->err ? "FAIL" : "pass",
                     probe_reason_name(rules->rule[i].reason));
        if (why->err)
            shell_printf(sh, " %s (%s, %s)", why->why, place_text(at, why->at),
                         err_name(why->err));
        shell_printf(sh, "\n");
    }
}

/* ---- how it is run ---- */

/* print_copy - print the instructions of a cell up to the int3s that fill the rest of it.
 * An int3 behind an instruction that falls through belongs to the copy.
 */
static void print_copy(const struct report *r, const struct explain_copy *copy)
{
    char text[INSN_MNEMONIC_MAX];
    bool falls_through = true;
    struct insn insn;

    shell_printf(r->sh, "copy       %s, at 0x%lx\n", copy->what, copy->addr);
    for (size_t off = 0; off < copy->len; off += insn.len) {
        if (insn_decode(&insn, copy->code + off, copy->len - off, copy->addr + off) ||
            (insn.kind == INSN_INT3 && !falls_through))
            return;
        shell_printf(r->sh, "           0x%lx  ", insn.addr);
        explain_print_bytes(r->sh, &insn);
        shell_printf(r->sh, " %2u %s\n", insn.len, insn_name(text, &insn));
        falls_through = insn_falls_through(&insn) && insn.kind != INSN_INT3;
    }
}

static void print_jump_kind(const struct report *r, const struct explain_jump *j)
{
    shell_printf(r->sh, "%s%s: %s\n", j->by_region ? "region" : pun_rung_name(j->rung),
                 j->is_evicted ? ", evicted" : "",
                 j->by_region ? "the instructions below the jump run as copies"
                              : explain_rung(j->rung));
    if (j->pad)
        shell_printf(r->sh, "pad        0x%lx\n", j->pad);
}

/* print_jump - print which jump the address has or can have, or why it has none. */
static void print_jump(const struct report *r)
{
    const struct explain_jump *j = &r->e.jump;

    shell_printf(r->sh, "jump       ");
    switch (j->state) {
    case JUMP_IS_THERE:
    case JUMP_POSSIBLE:
        print_jump_kind(r, j);
        break;
    case JUMP_NONE:
        shell_printf(r->sh, "none: %s (%s)\n", probe_reason_text(j->why),
                     probe_reason_name(j->why));
        break;
    case JUMP_OFF:
        shell_printf(r->sh, "none: jumps are switched off\n");
        break;
    case JUMP_UNARMED:
        shell_printf(r->sh, "none: no probe is enabled\n");
        break;
    case JUMP_SOON:
        shell_printf(r->sh, "soon: the optimizer has not looked at it yet\n");
        break;
    }
}

/* print_way - print how the instruction is run. If a jump is there, print as well how it
 * is run when the jump becomes a breakpoint again.
 */
static void print_way(const struct report *r)
{
    const struct explanation *e = &r->e;
    bool is_jump = e->jump.state == JUMP_IS_THERE;

    if (is_jump)
        shell_printf(r->sh, "tier       jump: %s\n", explain_way(WAY_JUMP));
    shell_printf(r->sh, "tier       %s%s: %s\n", explain_way_name(e->way),
                 is_jump ? " behind a breakpoint" : "", explain_way(e->way));
    if (!r->is_long) {
        print_jump(r);
        return;
    }
    if (e->post.err)
        shell_printf(r->sh, "tier       none with a post-handler: %s\n", e->post.why);
    else if (!e->is_probed && e->way == WAY_BOOST)
        shell_printf(r->sh, "tier       %s with a post-handler: %s\n",
                     explain_way_name(WAY_STEP), explain_way(WAY_STEP));
    print_jump(r);
    for (size_t i = 0; i < e->copy_count; i++)
        print_copy(r, &e->copies[i]);
}

static void print_live_flags(const struct report *r)
{
    shell_printf(r->sh, "flags      %s\n",
                 r->e.flags_live ? "live: what changes them has to save them"
                                 : "dead: the instruction writes all of them, or a call "
                                   "has led to it, which leaves none");
}

static void print_detour(const struct report *r)
{
    shell_printf(r->sh, "detour     %s: %s%s%s%s\n", detour_kind_name(r->e.detour),
                 detour_kind_text(r->e.detour),
                 r->e.detour_specialized ? ", by code of its own" : "",
                 r->e.detour_no_image ? "; this handler needs no image" : "",
                 r->e.linked ? "; from there to the next one's" : "");
    if (r->is_long)
        print_live_flags(r);
}

static void print_probes_there(const struct report *r)
{
    const struct explanation *e = &r->e;

    shell_printf(r->sh, "probes     %zu, %zu disabled, %zu with a post-handler; %s\n",
                 e->probes, e->disabled, e->with_post, site_state_name(e->state));
    shell_printf(r->sh, "hits       %lu\n", e->hits);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        if (r->is_long || e->missed[cause])
            shell_printf(r->sh, "misses     %lu %s\n", e->missed[cause],
                         probe_miss_name((enum probe_miss)cause));
}

/* print_programs - print the programs of the console's probes at the address. */
static void print_programs(const struct report *r)
{
    struct console_probe *cp = NULL;
    char text[96];

    console_probe_lock();
    while ((cp = console_probe_next(cp))) {
        const struct kprobe *p = cp->one_ptr;

        if (cp->kind != CONSOLE_ONE || p->addr != r->e.addr)
            continue;
        for (unsigned i = 0; p->program && i < p->program->count; i++) {
            program_op_text(p->program, i, text, sizeof(text));
            shell_printf(r->sh, "program    %s: %u. %s\n", cp->name, i, text);
        }
    }
    console_probe_unlock();
}

static void print_verdict(const struct report *r)
{
    const struct explanation *e = &r->e;

    if (e->why.err) {
        shell_printf(r->sh, "verdict    no probe: %s\n", e->why.why);
        return;
    }
    shell_printf(r->sh, "verdict    %s\n", e->is_probed ? "is probed" : "can be probed");
    print_way(r);
    print_detour(r);
    explain_print_cost(r->sh, e);
    if (!e->is_probed)
        return;
    print_probes_there(r);
    print_programs(r);
}

/* ---- the command ---- */

/* explain_more - print what only the option -v shows before the verdict. */
static void explain_more(const struct report *r)
{
    if (r->e.in_function)
        explain_print_changes(r->sh, &r->e);
    print_map(r);
    explain_print_rules(r->sh, "rule", &r->rules);
}

static void explain(struct report *r, const struct place *place, uintptr_t addr)
{
    probe_explain(addr, &r->e, explain_note_rule, &r->rules);
    print_address(r);
    print_inlined_at(r, place);
    watch_explain(r->sh, addr);
    explain_print_owners(r->sh, &r->e);
    if (r->is_long)
        explain_more(r);
    print_verdict(r);
    if (!r->is_long || !r->e.in_function)
        return;
    explain_look_at_region(&r->region, addr);
    explain_print_region(r->sh, &r->region, &r->e.why);
}

static int explain_run(struct shell *sh, int argc, char **argv)
{
    struct probe_reject why;
    struct place place;
    const char *where = NULL;
    bool is_long = false;
    struct report *r;
    uintptr_t addr;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            is_long = true;
        else if (where || argv[i][0] == '-')
            return probe_usage(sh, &probe_command_explain, argc, argv);
        else
            where = argv[i];
    }
    if (!where)
        return probe_usage(sh, &probe_command_explain, argc, argv);
    if (place_parse(&place, where))
        return place_no_place(sh, where);
    if (place_find(&place, &addr, &why)) {
        if (why.reason == PROBE_NO_SYMBOL && watch_place_is_data(&place))
            return watch_explain_data(sh, &place);
        return place_refused(sh, &place, &why);
    }
    r = kzalloc(sizeof(*r));
    if (!r)
        return shell_error(sh, ENOMEM, "probe: explain %s", where);
    r->sh = sh;
    r->is_long = is_long;
    explain(r, &place, addr);
    kfree(r);
    return 0;
}

static void explain_complete(struct shell_completion *c, int index)
{
    if (index <= 2)
        place_complete(c, index);
}

const struct probe_command probe_command_explain = {
    .name = "explain",
    .usage = "[-v] SYM[#N][+OFF]|FILE:LINE|ADDRESS",
    .help = "tell what a probe there is, or would be; -v: all that decides it",
    .run = explain_run,
    .complete = explain_complete,
};

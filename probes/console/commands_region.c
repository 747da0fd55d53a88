/* commands_region.c - the part of `probe explain` about regions: prints the instructions
 * that a single jump would displace, the bytes to which no branch may lead, and the
 * result of each rule. This works for any address, whichever kind of jumps is chosen now.
 */
#include "kernel/base/err.h"
#include "probes/console/commands_explain.h"
#include "probes/console/place.h"
#include "probes/core/life.h"
#include "probes/core/platform.h"
#include "probes/core/registry.h"
#include "probes/region/region.h"

#include <stdio.h>

/* ---- looked at ---- */

static void note_line(const char *text, void *arg)
{
    struct explain_region *r = arg;

    if (r->line_count < REGION_LINES_MAX)
        snprintf(r->lines[r->line_count++], REGION_LINE_MAX, "%s", text);
}

void explain_look_at_region(struct explain_region *out, uintptr_t addr)
{
    const struct site *site;

    plat_lock(PLAT_PROBES);
    site = registry_find(addr);
    out->is_open = site && region_is_open(site);
    region_each_rule(addr, &out->plan, explain_note_rule, &out->rules);
    region_draw(addr, note_line, out);
    reclaim_rest(); /* free what decoding has cached */
    plat_unlock(PLAT_PROBES);
}

/* ---- printed ---- */

static const struct probe_reject *first_broken(const struct explain_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rule[i].why.err)
            return &rules->rule[i].why;
    return NULL;
}

static void print_region_verdict(struct shell *sh, const struct explain_region *r,
                                 const struct probe_reject *why)
{
    if (!why->err)
        why = first_broken(&r->rules);
    if (r->is_open)
        shell_printf(sh, "region     is there: its instructions run as copies\n");
    else if (why)
        shell_printf(sh, "region     none: %s\n", why->why);
    else
        shell_printf(sh, "region     possible\n");
}

static void print_spans(struct shell *sh, const struct region *r)
{
    shell_printf(sh, "DCR        0x%lx to 0x%lx%s: %u bytes, %u instruction%s", r->addr,
                 r->addr + r->len, r->len < REGION_JUMP_LEN ? ", no further" : "", r->len,
                 r->count, r->count == 1 ? "" : "s");
    if (r->padding)
        shell_printf(sh, ", padding from +%u on", r->len - r->padding);
    shell_printf(sh, "\nJTPR       0x%lx to 0x%lx\n", r->addr + 1,
                 r->addr + REGION_JUMP_LEN);
}

static void print_insns(struct shell *sh, const struct region *r)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t off = r->starts[i];
        struct insn insn;

        if (!insn_decode(&insn, r->bytes + off, r->len - off, r->addr + off))
            explain_print_insn(sh, "          ", &insn);
    }
}

void explain_print_region(struct shell *sh, const struct explain_region *r,
                          const struct probe_reject *why)
{
    print_region_verdict(sh, r, why);
    print_spans(sh, &r->plan);
    for (size_t i = 0; i < r->line_count; i++)
        shell_printf(sh, "           %s\n", r->lines[i]);
    print_insns(sh, &r->plan);
    explain_print_rules(sh, "region", &r->rules);
}

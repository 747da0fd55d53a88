/* commands_text.c - the part of `probe explain` about bytes: prints the owner of each
 * byte, and the latest changes.
 */
#include "probes/console/commands_explain.h"
#include "probes/console/place.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/text/text_phases.h"

/* ---- owners ---- */

static void print_owner(struct shell *sh, const struct explain_byte *b)
{
    static const char *const owners[] = {
        [OWNER_NOBODY] = "there is no readable byte",
        [OWNER_ORIGINAL] = "original",
        [OWNER_ENGINE] = "int3 of the engine",
        [OWNER_JUMP] = "written by the jump at ",
        [OWNER_OTHER] = "int3 that is not the engine's",
    };
    char at[PLACE_TEXT_MAX];

    shell_printf(sh, "%s%s", owners[b->owner],
                 b->owner == OWNER_JUMP ? place_text(at, b->jump) : "");
    if (b->reader)
        shell_printf(sh, ", read by the jump at %s", place_text(at, b->reader));
}

static bool is_same_byte(const struct explain_byte *a, const struct explain_byte *b)
{
    return a->owner == b->owner && a->jump == b->jump && a->reader == b->reader;
}

/* print_run - print bytes @first up to @end, which have the same owner. */
static void print_run(struct shell *sh, const struct explanation *e, size_t first,
                      size_t end)
{
    const struct explain_byte *b = e->bytes;

    shell_printf(sh, "%-10s", first ? "" : "byte");
    for (size_t i = first; i < end && b->owner != OWNER_NOBODY; i++)
        shell_printf(sh, " %02x", b[i].now);
    shell_printf(sh, b->owner != OWNER_NOBODY ? ", " : " ");
    print_owner(sh, &b[first]);
    if (b[first].owner == OWNER_JUMP || b[first].owner == OWNER_ENGINE) {
        shell_printf(sh, ", original");
        for (size_t i = first; i < end; i++)
            shell_printf(sh, " %02x", b[i].original);
    }
    shell_printf(sh, "\n");
}

void explain_print_owners(struct shell *sh, const struct explanation *e)
{
    size_t first = 0;

    for (size_t i = 1; i <= e->byte_count; i++) {
        if (i < e->byte_count && is_same_byte(&e->bytes[i], &e->bytes[first]))
            continue;
        print_run(sh, e, first, i);
        first = i;
    }
}

/* ---- history ---- */

static void print_answers(struct shell *sh, const struct text_phase *p)
{
    for (unsigned cpu = 0; cpu < p->cpus; cpu++) {
        shell_printf(sh, "%s%u ", cpu ? ", " : "", cpu);
        if (p->answered[cpu] == TEXT_PHASE_HALTED)
            shell_printf(sh, "halted");
        else
            shell_printf(sh, "%u.%u", p->answered[cpu] / 1000,
                         p->answered[cpu] / 100 % 10);
    }
    shell_printf(sh, "\n");
}

/* print_phases - print the phases of the batch of @c in which bytes of @c were stored. */
static void print_phases(struct shell *sh, const struct text_change *c)
{
    for (uint64_t n = c->first_phase; n < c->first_phase + c->phases; n++) {
        struct text_phase p;
        size_t off, count;
        bool known;

        plat_lock(PLAT_TEXT);
        known = text_phases_get(n, &p);
        plat_unlock(PLAT_TEXT);
        count = known ? text_change_in(c, p.step, p.level, &off) : 0;
        if (!count)
            continue;
        shell_printf(sh, "phase      %lu.%06lu s, %s:", p.ns / 1000000000,
                     p.ns / 1000 % 1000000, text_phase_name(p.step));
        for (size_t i = off; i < off + count; i++)
            shell_printf(sh, " %02x",
                         p.step == TEXT_POKE_GUARD ? INSN_INT3 : c->bytes[i]);
        shell_printf(sh, "; synchronised, CPU and us: ");
        print_answers(sh, &p);
    }
}

void explain_print_changes(struct shell *sh, const struct explanation *e)
{
    char at[PLACE_TEXT_MAX];

    for (size_t i = e->change_count; i--;) {
        const struct text_change *c = &e->changes[i];

        shell_printf(sh, "history    %lu.%06lu s, %s:", c->ns / 1000000000,
                     c->ns / 1000 % 1000000, place_text(at, c->addr));
        for (size_t j = 0; j < c->len; j++)
            shell_printf(sh, " %02x", c->bytes[j]);
        shell_printf(sh, "\n");
        print_phases(sh, c);
    }
    if (!e->change_count)
        shell_printf(sh, "history    none among the last %u changes of text\n",
                     TEXT_HISTORY_LEN);
}

/* explain_text.c - the bytes at an address: to what each belongs, and its latest changes.
 *
 * A byte is the program's, or the engine has written it as a part of a jump, which may
 * begin in front of it. In both cases another jump may read it as a part of its
 * displacement.
 */
#include "probes/core/recover.h"
#include "probes/core/registry.h"
#include "probes/explain/explain.h"
#include "probes/insn/encode.h"
#include "probes/jump/jump_site.h"

static void byte_of_jump(struct explain_byte *b, uintptr_t addr, const struct site *site)
{
    if (addr < site->addr + jump_site(site)->jump_len) {
        b->owner = OWNER_JUMP;
        b->jump = site->addr;
    } else if (addr < site->addr + jump_site(site)->jump_span && !b->reader) {
        b->reader = site->addr;
    }
}

/* look_at_byte - @starts: an instruction may start at @addr, so that an int3 there is one */
static void look_at_byte(struct explain_byte *b, uintptr_t addr, bool starts)
{
    if (plat_text_read(&b->now, addr, 1) || recover_bytes(&b->original, addr, 1)) {
        b->owner = OWNER_NOBODY;
        return;
    }
    b->owner = b->now == INSN_INT3 && starts ? OWNER_OTHER : OWNER_ORIGINAL;
    for (uintptr_t a = addr - INSN_MAX_LEN + 1; a <= addr; a++) {
        const struct site *site = registry_find(a);

        if (site && site->state == SITE_OPTIMIZED)
            byte_of_jump(b, addr, site);
        else if (site && site->state == SITE_ARMED && a == addr)
            b->owner = OWNER_ENGINE;
    }
}

/* bytes_of_interest - how many bytes from the address on to look at: up to the end of the
 * instruction around it, or of the jump that is there.
 */
static size_t bytes_of_interest(const struct explanation *e)
{
    const struct site *site = registry_find(e->addr);
    size_t count = 1;

    if (e->map_at < e->map_count)
        count = insn_next(&e->map[e->map_at]) - e->addr;
    if (site && site->state == SITE_OPTIMIZED && jump_site(site)->jump_span > count)
        count = jump_site(site)->jump_span;
    return count;
}

void explain_look_at_text(struct explanation *e)
{
    e->byte_count = bytes_of_interest(e);
    for (size_t i = 0; i < e->byte_count; i++)
        look_at_byte(&e->bytes[i], e->addr + i,
                     e->map_at == e->map_count || e->map[e->map_at].addr == e->addr + i);
    plat_lock(PLAT_TEXT);
    e->change_count =
        text_history_find(e->addr, e->addr + e->byte_count, e->changes, EXPLAIN_CHANGES);
    plat_unlock(PLAT_TEXT);
}

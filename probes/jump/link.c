/* link.c - stages 11 and 12: makes and cuts links between detours.
 *
 * A detour ends with a jump back to the text. If the next instruction is a jump as well,
 * the CPU goes from there to a pad, and on to the next detour: three jumps, each to
 * another page. With a link the first of these jumps leads to the next detour directly.
 *
 *     detour of A   | inc | copy of A | jmp --.      before: to B in the text
 *     detour of B   | inc | copy of B | jmp   <-'    linked: to B's detour
 *
 * Both ways do the same as long as B is a jump that leads to this detour. So a link
 * exists only while A and B are such jumps:
 *
 *   1. The link is made when both A and B are jumps, or are certain to be written as
 *      jumps, and when all CPUs see the whole of B's detour, that is, after the first
 *      synchronisation of the change. One store of eight aligned bytes makes it; four of
 *      these bytes are the displacement. So a CPU takes the old way or the new one. No
 *      synchronisation is needed, because both ways do the same.
 *   2. The link is cut by such a store before the text at B changes. The first
 *      synchronisation of that change is also for the cut: afterwards all CPUs come to B
 *      by its address, as if there were no links.
 *   3. B's detour is freed after the quiescence that follows, as always: threads that
 *      were on their way to the detour, or in it, have left.
 *   4. If A loses its jump, with B or without, the link is cut in the same way. So a thread
 *      in a detour that is taken out of use goes on in the text. By a link it would come to
 *      the end of a second hit, and might still be in such a detour: quiesce() takes a
 *      thread that comes to two ends for outside.
 *
 * docs/model/link.pml is a model of this. A link leads only to the instruction that is
 * next in the text. So a loop always passes the text, and the engine can see there that
 * the thread is in no detour.
 */
#include "probes/jump/link.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/near.h"
#include "probes/jump/platform_jump.h"
#include "probes/region/region.h"

#define WORD_LEN 8
#define DISP_LEN 4
#define OPCODE_LEN (INSN_JMP32_LEN - DISP_LEN)

size_t link_total; /* PLAT_PROBES to write */

/* ---- the jump behind a copy ---- */

bool link_jump_fits(uintptr_t at)
{
    return (at + OPCODE_LEN) % WORD_LEN <= WORD_LEN - DISP_LEN;
}

size_t link_room_before(uintptr_t at)
{
    return link_jump_fits(at) ? 0 : WORD_LEN - (at + OPCODE_LEN) % WORD_LEN;
}

static bool ends_with_jump(const struct site *site, const struct insn *insn)
{
    switch (jump_site(site)->kind) {
    case DETOUR_NONE:
    case DETOUR_PROGRAM:
    case DETOUR_CALL:
        return !site_is_call(site) && insn_falls_through(insn);
    default:
        return false;
    }
}

/* jump_of - the address of the jump that ends the detour of @site; 0: there is no such
 * jump, or one store cannot change it.
 */
static uintptr_t jump_of(const struct site *site)
{
    uintptr_t cell, jump;
    struct insn insn;

    if (!site_detour(site) || insn_decode(&insn, site->bytes, site->len, site->addr) ||
        !ends_with_jump(site, &insn))
        return 0;
    cell = (uintptr_t)insn_slot_start(site_detour(site));
    jump = detour_start(site, cell) + insn_relocated_len(&insn);
    return link_jump_fits(jump) ? jump : 0;
}

/* jump_put - let the jump at @jump lead to @target. Return: false: it cannot reach it. */
static bool jump_put(uintptr_t jump, uintptr_t target)
{
    uintptr_t word = align_down(jump + OPCODE_LEN, WORD_LEN);
    uint8_t bytes[WORD_LEN], code[INSN_JMP32_LEN];

    if (insn_encode_jmp32(code, jump, target))
        return false;
    if (plat_text_read(bytes, word, sizeof(bytes)))
        plat_bug("a detour is not readable", jump);
    for (size_t i = 0; i < DISP_LEN; i++)
        bytes[jump + OPCODE_LEN - word + i] = code[OPCODE_LEN + i];
    if (plat_text_store(word, bytes, sizeof(bytes)))
        plat_bug("a detour is not writable", jump);
    return true;
}

/* ---- which detours are linked ---- */

/* will_be_jump - is @site a jump, or does the batch that is being written make it one? */
static bool will_be_jump(const struct site *site)
{
    return jump_is_at(site, STAGE_JUMP) || jump_is_at(site, STAGE_TO_JUMP);
}

static struct site *site_behind(const struct site *site)
{
    return registry_find(site->addr + site->len);
}

static struct site *site_before(uintptr_t addr)
{
    struct site *site;

    near_for_each(site, addr - INSN_MAX_LEN, addr)
        if (site->addr + site->len == addr)
            break;
    return site;
}

/* can_enter - may a link lead to the detour of @site? The detour of a direct call needs
 * the return address that only the call itself pushes. And where a debug register stops
 * CPUs, they must come to the instruction itself.
 */
static bool can_enter(const struct site *site)
{
    return site && !plat_stops_at(site->addr) && will_be_jump(site) &&
           site_detour(site) && !region_is_open(site) && !site_is_call(site);
}

static void make_link(struct site *site)
{
    const struct site *next;
    uintptr_t jump;

    if (!will_be_jump(site) || jump_site(site)->linked || region_is_open(site))
        return;
    next = site_behind(site);
    jump = can_enter(next) ? jump_of(site) : 0;
    if (!jump || !jump_put(jump, (uintptr_t)site_detour(next)))
        return;
    jump_site(site)->linked = true;
    link_total++;
}

void link_make_around(struct site *site)
{
    struct site *first = site_before(site->addr);

    if (first)
        make_link(first);
    make_link(site);
}

static void lead_back(struct site *site)
{
    uintptr_t jump = jump_of(site);

    if (!jump || !jump_put(jump, site->addr + site->len))
        plat_bug("a link cannot be cut", site->addr);
    jump_site(site)->linked = false;
    link_total--;
}

void link_cut(struct site *site)
{
    struct site *first = site_before(site->addr);

    if (first && jump_site(first)->linked)
        lead_back(first);
    if (jump_site(site)->linked)
        lead_back(site);
}

uintptr_t link_into(uintptr_t addr)
{
    const struct site *first = site_before(addr);

    return first && jump_site(first)->linked ? jump_of(first) : 0;
}

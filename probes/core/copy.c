/* copy.c - what an ip in one of a site's cells means in the program.
 *
 *   step slot, pair slot:  | copy | ...
 *   boost slot, detour:    | what a jump runs first | copy | ...
 *
 * Up to where the copy begins the program is at the instruction, and may go there again;
 * anywhere behind, it is behind the instruction. A copy of several instructions (a branch
 * that has no long form) is no exception: past its first one nothing can fault.
 *
 * The copies of a region are in a cell of their own, each of another original; the boosted
 * copy is among them, and the site's own may still be run by those who came before.
 *
 * A return point is what kretprobe_trampoline is: who is there has returned.
 *
 * The detour of a direct call is entered by that call: there the program is in the function
 * that it has called. A landing pad is passed on the way to a detour, and means the same.
 */
#include "kernel/base/bits.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/jump/pad.h"
#include "probes/returns/return_point.h"

uintptr_t copy_start(const struct site *site, uintptr_t cell)
{
    if (cell == (uintptr_t)site_step_slot(site))
        return cell;
    if (site->is_sti && site->pair && cell == (uintptr_t)site->pair->slot)
        return cell;
    if (cell == align_down((uintptr_t)site_boost_slot(site), INSN_SLOT_LEN))
        return (uintptr_t)site->boost_slot;
    if (region_has_cell(site, cell))
        return cell;
    return cell + site->detour_copy;
}
NOKPROBE(copy_start);

uintptr_t copy_original(uintptr_t ip)
{
    const struct site *site;
    size_t off;

    ip = pad_pass(ip);
    site = insn_slot_owner(ip, &off);
    if (!site)
        return ip;
    if (region_has_cell(site, ip - off))
        return region_original(site->region, off);
    if (copy_is_called(site))
        return site_target(site);
    if (return_point_is(ip))
        return (uintptr_t)kretprobe_trampoline;
    return ip <= copy_start(site, ip - off) ? site->addr : site->addr + site->len;
}

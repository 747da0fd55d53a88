/* copy.c - finds the address in the program that an ip in a cell stands for.
 *
 * If the ip is not behind the start of the copy, the instruction has not been executed.
 * In front of the copy, in the same cell, there may be code that a jump runs first.
 */
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"

uintptr_t copy_start(const struct site *site, uintptr_t cell)
{
    if (cell == (uintptr_t)site_step_slot(site) ||
        (site->is_sti && cell == (uintptr_t)site_pair(site)->slot))
        return cell;
    /* Every cell has INSN_SLOT_LEN bytes or more, and the copy begins among the first. */
    if ((uintptr_t)site_boost_slot(site) - cell < INSN_SLOT_LEN)
        return (uintptr_t)site->boost_slot;
    return 0;
}
NOKPROBE(copy_start);

uintptr_t copy_original(uintptr_t ip)
{
    const struct site *site;
    size_t off;

    if (ext_original(&ip))
        return ip;
    site = insn_slot_owner(ip, &off);
    if (!site)
        return ip;
    if (ip <= copy_start(site, ip - off))
        return site->addr;
    if (site->is_sti && ip - off == (uintptr_t)site_pair(site)->slot && off > site->len)
        return site->addr + site_pair(site)->len;
    return site->addr + site->len;
}

/* by_hand.c - writes the jumps of by_hand.h, and takes them out. While the other bytes of
 * a jump are changed, its first byte is an int3, as in the engine.
 */
#include "tests/kernel/by_hand.h"

#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/ktest.h"

static void text_put(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    plat_lock(PLAT_TEXT);
    plat_text_write(addr, bytes, len);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

static void optimizer_on(void)
{
    optimize_switch(true);
}

void by_hand_begin(void)
{
    if (!optimize_is_on())
        return;
    optimize_switch(false);
    ktest_at_end(optimizer_on);
}

bool by_hand_jump(struct kprobe *p)
{
    struct site *site = p->site;
    uint8_t jump[INSN_JMP32_LEN];
    struct probe_reject why;
    int err;

    if (optimize_is_on())
        plat_bug("a jump by hand beside those of the optimizer", site->addr);
    plat_lock(PLAT_PROBES);
    err = detour_prepare(site, &why);
    plat_unlock(PLAT_PROBES);
    if (err)
        return false;
    if (site_is_call(site))
        insn_encode_call32(jump, site->addr, (uintptr_t)site_detour(site));
    else
        insn_encode_jmp32(jump, site->addr, (uintptr_t)site_detour(site));
    text_put(site->addr + 1, jump + 1, sizeof(jump) - 1);
    text_put(site->addr, jump, 1);
    return true;
}

void by_hand_int3(struct kprobe *p)
{
    static const uint8_t int3 = INSN_INT3;
    struct site *site = p->site;

    text_put(site->addr, &int3, 1);
    text_put(site->addr + 1, site->bytes + 1, INSN_JMP32_LEN - 1);
    plat_lock(PLAT_PROBES);
    plat_quiesce();
    detour_release(site);
    plat_unlock(PLAT_PROBES);
}

bool with_jump(struct kprobe *p, long (*fn)(long))
{
    by_hand_begin();
    p->addr = (uintptr_t)fn;
    if (register_kprobe(p) == 0 && by_hand_jump(p))
        return true;
    ktest_report(false, "there is a jump");
    return false;
}

void without_jump(struct kprobe *p)
{
    by_hand_int3(p);
    unregister_kprobe(p);
}

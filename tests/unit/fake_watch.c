/* fake_watch.c - implements platform_watch.h with an array in place of debug
 * registers.
 */
#include "tests/unit/fake_watch.h"

#include "kernel/base/err.h"
#include "probes/watch/platform_watch.h"
#include "probes/watch/watch_parts.h"
#include "tests/unit/port_fake_parts.h"

struct fake_watch fake_watch;

int plat_watch_take(const char *owner)
{
    for (int i = 0; i < FAKE_REGS; i++) {
        if (fake_watch.owner[i])
            continue;
        fake_watch.owner[i] = owner;
        return i;
    }
    return -EBUSY;
}

void plat_watch_give(unsigned reg)
{
    if (fake_watch.addr[reg])
        fake_breach(__func__, "the register is still in use");
    fake_watch.owner[reg] = NULL;
}

const char *plat_watch_owner(unsigned reg)
{
    return fake_watch.owner[reg];
}

void plat_watch_set(unsigned reg, uintptr_t addr, unsigned kind, size_t len)
{
    fake_watch.addr[reg] = addr;
    fake_watch.kind[reg] = kind;
    fake_watch.len[reg] = len;
}

void plat_watch_move(unsigned reg, uintptr_t addr)
{
    fake_watch.addr[reg] = addr;
}

uintptr_t plat_watch_addr(unsigned reg)
{
    return fake_watch.addr[reg];
}

unsigned plat_watch_bits(unsigned long dr6)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < FAKE_REGS; i++)
        if (fake_watch.addr[i])
            bits |= 1u << i;
    return bits & (unsigned)dr6;
}

bool plat_watch_is_inner(const struct pt_regs *r)
{
    return fake_watch.inner && r->ip == fake_watch.inner;
}

void plat_watch_tell(struct pt_regs *regs, unsigned bits, bool miss)
{
    *(miss ? &fake_watch.missed : &fake_watch.told) |= bits;
    if (fake_watch.on_tell && !miss)
        fake_watch.on_tell(regs);
}

void plat_watch_rest(unsigned bits)
{
    fake_watch.rests |= bits;
}

bool plat_watch_is_own(uintptr_t addr, size_t len)
{
    return fake_watch.own >= addr && fake_watch.own < addr + len;
}

bool plat_watch_is_kernel(uintptr_t addr)
{
    return addr >= 0x1000;
}

uintptr_t plat_watch_ip(const struct pt_regs *regs)
{
    return fake_watch.program ? fake_watch.program : regs->ip;
}

void plat_watch_execute(uintptr_t addr)
{
    fake_watch.executes = addr;
}

bool fake_debug(struct pt_regs *regs, unsigned long dr6)
{
    regs->dr6 = dr6;
    return fake_take(regs, watch_debug_handler);
}

/* recover.c - undoes, in a copy, what arm.c and optimize.c did to the text. */
#include "probes/core/recover.h"

#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/jump/optimize.h"

struct copy {
    uint8_t *bytes;
    uintptr_t addr;
    size_t len;
};

static void restore(struct copy *copy, const struct site *site, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (site->addr + i - copy->addr < copy->len)
            copy->bytes[site->addr + i - copy->addr] = site->bytes[i];
}

/* A breakpoint changes its own byte only. */
static void restore_breakpoints(struct copy *copy)
{
    for (size_t i = 0; i < copy->len; i++) {
        const struct site *site;

        if (copy->bytes[i] != INSN_INT3)
            continue;
        site = registry_find(copy->addr + i);
        if (site)
            restore(copy, site, 1);
    }
}

/* A jump may begin in front of the copy. */
static void restore_jumps(struct copy *copy)
{
    for (size_t i = 0; i < copy->len + INSN_MAX_LEN - 1; i++) {
        const struct site *site = registry_find(copy->addr + i - (INSN_MAX_LEN - 1));

        if (site && site->state == SITE_OPTIMIZED)
            restore(copy, site, site->jump_len);
    }
}

int recover_bytes(uint8_t *out, uintptr_t addr, size_t len)
{
    struct copy copy = { .bytes = out, .addr = addr, .len = len };
    int err = plat_text_read(out, addr, len);

    if (err)
        return err;
    if (unoptimize_jumps())
        restore_jumps(&copy);
    restore_breakpoints(&copy);
    return 0;
}

/* recover.c - undoes, in a copy, what arm.c did to the text. */
#include "probes/recover.h"

#include "probes/insn/encode.h"
#include "probes/life.h"
#include "probes/registry.h"

int recover_bytes(uint8_t *out, uintptr_t addr, size_t len)
{
    int err = plat_text_read(out, addr, len);

    if (err)
        return err;
    for (size_t i = 0; i < len; i++) {
        const struct site *site;

        if (out[i] != INSN_INT3)
            continue;
        site = registry_find(addr + i);
        if (site)
            out[i] = site->bytes[0];
    }
    return 0;
}

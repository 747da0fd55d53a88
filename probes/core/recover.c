/* recover.c - reads text, and undoes in this copy what the engine has done to the text.
 */
#include "probes/core/recover.h"

#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"

/* A breakpoint changes its own byte only. */
static void restore_breakpoints(uint8_t *bytes, uintptr_t addr, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct site *site = bytes[i] == INSN_INT3 ? registry_find(addr + i) : NULL;

        if (site)
            bytes[i] = site->bytes[0];
    }
}

int recover_bytes(uint8_t *out, uintptr_t addr, size_t len)
{
    int err = plat_text_read(out, addr, len);

    if (err)
        return err;
    ext_recover(out, addr, len);
    restore_breakpoints(out, addr, len);
    return 0;
}

/* place_text.c - writes the name of an instruction. */
#include "probes/many/place_text.h"
#include "kernel/debug/ksyms.h"
#include "probes/core/platform.h"

#include <stdio.h>

const char *place_text(char *buf, uintptr_t addr)
{
    struct plat_symbol sym;
    const char *gone;
    size_t offset;

    if (plat_symbol_at(addr, &sym) == 0)
        snprintf(buf, PLACE_TEXT_MAX, "%s%s%s+0x%lx", sym.module ? sym.module : "",
                 sym.module ? ":" : "", sym.name, addr - sym.start);
    else if ((gone = ksyms_gone(addr, &offset)) != NULL)
        snprintf(buf, PLACE_TEXT_MAX, "[%s]+0x%zx", gone, offset);
    else
        snprintf(buf, PLACE_TEXT_MAX, "0x%lx", addr);
    return buf;
}

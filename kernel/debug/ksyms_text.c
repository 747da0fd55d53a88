/* ksyms_text.c - writes addresses as text, for reports, traces and the console. */
#include "kernel/debug/ksyms.h"

#include <extra.h>
#include <stdio.h>

size_t ksyms_text(char *buf, size_t size, uintptr_t addr)
{
    struct ksym sym;
    const char *gone;
    size_t offset;

    if (ksyms_at(addr, &sym) == 0)
        return (size_t)scnprintf(buf, size, "%s+0x%zx/0x%zx%s%s%s", sym.name, sym.offset,
                                 sym.size, sym.module ? " [" : "",
                                 sym.module ? sym.module : "", sym.module ? "]" : "");
    gone = ksyms_gone(addr, &offset);
    return gone ? (size_t)scnprintf(buf, size, "[%s]+0x%zx", gone, offset) : 0;
}

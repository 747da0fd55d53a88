/* place_text.c - writes the name of an instruction. */
#include "probes/many/place_text.h"
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "probes/core/platform.h"

#include <stdio.h>
#include <string.h>

/* place_number - append "#N" to the name @text, of PLACE_TEXT_MAX bytes, if the function at
 * @start is the N-th one of that name: so the text of a place can be typed.
 */
static void place_number(char *text, uintptr_t start)
{
    size_t len = strlen(text);
    struct plat_symbol sym;
    unsigned n = 0;

    if (plat_symbol_find(text, &sym) != -EADDRNOTAVAIL)
        return;
    do
        snprintf(text + len, PLACE_TEXT_MAX - len, "#%u", ++n);
    while (!plat_symbol_find(text, &sym) && sym.start != start);
}

const char *place_text(char *buf, uintptr_t addr)
{
    struct plat_symbol sym;
    const char *gone;
    size_t offset, len;

    if (plat_symbol_at(addr, &sym) == 0) {
        snprintf(buf, PLACE_TEXT_MAX, "%s%s%s", sym.module ? sym.module : "",
                 sym.module ? ":" : "", sym.name);
        place_number(buf, sym.start);
        len = strlen(buf);
        snprintf(buf + len, PLACE_TEXT_MAX - len, "+0x%lx", addr - sym.start);
    } else if ((gone = ksyms_gone(addr, &offset)) != NULL)
        snprintf(buf, PLACE_TEXT_MAX, "[%s]+0x%zx", gone, offset);
    else
        snprintf(buf, PLACE_TEXT_MAX, "0x%lx", addr);
    return buf;
}

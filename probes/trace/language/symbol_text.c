/* symbol_text.c - writes addresses as texts, also those at the end of a function. */
#include "probes/trace/language/symbol_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* end_text - write an address that is the end of a function. Return: false: it is none. */
static bool end_text(char *buf, size_t size, uint64_t addr, symbol_text_t symbol)
{
    char last[128];
    const char *plus, *len;

    if (!symbol(last, sizeof(last), addr - 1) || !(plus = strchr(last, '+')) ||
        !(len = strchr(plus, '/')))
        return false;
    len++;
    snprintf(buf, size, "%.*s%.*s/%s", (int)(plus + 1 - last), last,
             (int)strcspn(len, " "), len, len);
    return true;
}

const char *address_text(char *buf, size_t size, uint64_t addr, symbol_text_t symbol)
{
    if (!symbol || (!symbol(buf, size, addr) && !end_text(buf, size, addr, symbol)))
        snprintf(buf, size, "0x%llx", (unsigned long long)addr);
    return buf;
}

const char *caller_text(char *buf, size_t size, uint64_t addr, symbol_text_t symbol)
{
    address_text(buf, size, addr, symbol);
    if (symbol && strstr(buf, "+0x0/"))
        end_text(buf, size, addr, symbol);
    return buf;
}

/* trace_host.c - gives definitions a small kernel for tests; its symbols are a table. */
#include "tests/unit/trace_host.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *module, *name;
    uintptr_t addr;
} symbols[] = {
    { "", "vfs_read", VFS_READ },
    { "", "vfs_write", VFS_WRITE },
    { "", "do.part.0", 0xffffffff80003000 },
    { "", "twice", 0xffffffff80004000 },
    { "", "twice", 0xffffffff80005000 },
    { "", "jiffies", JIFFIES },
    { "mod", "mod_init", 0xffffffffa0000000 },
};

static long blocks, fail_after;

static int symbol(const char *module, size_t module_len, const char *name, size_t len,
                  uintptr_t *addr)
{
    int found = 0;

    if (module && (module_len != 3 || memcmp(module, "mod", 3)))
        return -ENOENT;
    for (size_t i = ARRAY_LEN(symbols); i--;)
        if (!*symbols[i].module == !module && strlen(symbols[i].name) == len &&
            !memcmp(symbols[i].name, name, len)) {
            *addr = symbols[i].addr;
            found++;
        }
    return found;
}

static bool is_entry(uintptr_t addr)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++)
        if (symbols[i].addr == addr && addr != JIFFIES)
            return true;
    return false;
}

/* function - find the function that contains @addr. Each function has 0x90 bytes. */
static bool function(uintptr_t addr, uintptr_t *start, uintptr_t *end)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++)
        if (addr >= symbols[i].addr && addr < symbols[i].addr + 0x90) {
            *start = symbols[i].addr;
            *end = symbols[i].addr + 0x90;
            return true;
        }
    return false;
}

static unsigned cpus(void)
{
    return 4;
}

static void *alloc(size_t size)
{
    if (fail_after && !--fail_after)
        return NULL;
    blocks++;
    return malloc(size);
}

static void release(void *mem)
{
    blocks -= mem != NULL;
    free(mem);
}

struct def_host trace_host = {
    .symbol = symbol,
    .is_entry = is_entry,
    .function = function,
    .cpus = cpus,
    .alloc = alloc,
    .free = release,
};

void trace_host_fail_after(long n)
{
    fail_after = n;
}

long trace_host_blocks(void)
{
    return blocks;
}

/* port_symbols.c - the part of platform.h that uses tables of the link: functions by name
 * and by address, and the addresses at which CPUs enter code.
 */
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/memmap.h"
#include "kernel/module/module.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX 256

/* Entries of compiled functions, ascending; see linker.ld. */
extern const uintptr_t patchable_start[], patchable_end[];

static bool is_function_symbol(const struct ksym *sym)
{
    return sym->type == 'T' || sym->type == 't';
}

static struct plat_symbol symbol_from(const struct ksym *sym)
{
    return (struct plat_symbol){ sym->start, sym->size, sym->name, sym->module };
}

/* find_nth - find the @nth function with the name @name.
 * @nth: 1: the first one; 0: there must be only one
 */
static int find_nth(const char *name, uint64_t nth, struct plat_symbol *out)
{
    struct ksym sym, found = { 0 };
    size_t iter = 0;
    uint64_t seen = 0;

    while (ksyms_next(name, &iter, &sym)) {
        if (sym.module && found.name && !found.module)
            break; /* it was found in the image: modules are not searched */
        if (is_function_symbol(&sym) && (++seen == nth || !nth))
            found = sym;
    }
    if (!found.name)
        return -ENOENT;
    if (!nth && seen > 1)
        return -EADDRNOTAVAIL;
    *out = symbol_from(&found);
    return 0;
}

int plat_symbol_find(const char *name, struct plat_symbol *out)
{
    const char *mark = strchr(name, '#');
    char base[NAME_MAX];
    uint64_t nth;

    if (!mark)
        return find_nth(name, 0, out);
    if ((size_t)(mark - name) >= sizeof(base) || parse_u64(mark + 1, 10, &nth) || !nth)
        return -ENOENT;
    memcpy(base, name, (size_t)(mark - name));
    base[mark - name] = '\0';
    return find_nth(base, nth, out);
}

int plat_symbol_at(uintptr_t addr, struct plat_symbol *out)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym) || !is_function_symbol(&sym))
        return -ENOENT;
    *out = symbol_from(&sym);
    return 0;
}

/* Tables by probes/region/gen_targets.py, with the low 32 bits of addresses. */
extern const uint32_t targets_table[], targets_total, targets_opaque_total;
extern const struct plat_opaque targets_opaque_table[];

void plat_targets(uintptr_t addr, struct plat_targets *out)
{
    if (addr >= (uintptr_t)_end) {
        port_module_targets(addr, out);
        return;
    }
    *out = (struct plat_targets){
        .base = UINT64_C(0xffffffff00000000),
        .offsets = targets_table,
        .count = targets_total,
        .opaque = targets_opaque_table,
        .opaque_count = targets_opaque_total,
    };
}

static bool is_patchable(uintptr_t addr)
{
    const uintptr_t *low = patchable_start, *high = patchable_end;

    while (low < high) {
        const uintptr_t *mid = low + (high - low) / 2;

        if (*mid == addr)
            return true;
        if (*mid < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool plat_is_compiled(uintptr_t addr)
{
    return is_patchable(addr) || module_is_entry(addr);
}

/* symbols.c - finds symbols and facts of loaded modules, in any context.
 *
 * A lookup has preemption off. The tables that it reads are freed after quiescence, so
 * they stay until the lookup has ended. Names are never freed, since a caller may keep
 * them.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/module/init_text.h"
#include "kernel/module/parts.h"
#include "kernel/sync/mutex.h"

#include <stdlib.h>
#include <string.h>

/* ---- names that stay ---- */

#define NAME_BUCKETS 256

struct kept {
    struct kept *next;
    char name[];
};

static struct kept *names[NAME_BUCKETS];
static struct mutex names_lock = MUTEX_INIT(names_lock);

static size_t name_bucket(const char *name)
{
    size_t hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash % NAME_BUCKETS;
}

static const char *name_keep_locked(const char *name)
{
    struct kept **bucket = &names[name_bucket(name)];
    size_t len = strlen(name) + 1;
    struct kept *k;

    for (k = *bucket; k; k = k->next)
        if (strcmp(k->name, name) == 0)
            return k->name;
    k = kmalloc(sizeof(*k) + len);
    if (!k)
        return NULL;
    memcpy(k->name, name, len);
    k->next = *bucket;
    *bucket = k;
    return k->name;
}

const char *name_keep(const char *name)
{
    const char *kept;

    mutex_lock(&names_lock);
    kept = name_keep_locked(name);
    mutex_unlock(&names_lock);
    return kept;
}

/* ---- the table of one module ---- */

/* is_wanted_symbol - does @s belong in the table? The rules are those of
 * kernel/debug/gen_ksyms.py.
 */
static bool is_wanted_symbol(const struct elf_object *o, const struct elf_layout *layout,
                             const struct elf_symbol *s)
{
    const char *name = elf_symbol_name(o, s);

    if (s->section == ELF_UNDEFINED || s->section >= ELF_RESERVED ||
        layout->places[s->section].segment == ELF_NOWHERE)
        return false;
    if (elf_type(s) == ELF_SECTION || elf_type(s) == ELF_FILE || !*name || *name == '.')
        return false;
    return elf_bind(s) != ELF_LOCAL || elf_type(s) == ELF_FUNC || !strchr(name, '.') ||
           (elf_type(s) == ELF_OBJECT && layout->places[s->section].segment != ELF_TEXT);
}

static char letter_of(const struct elf_object *o, const struct elf_layout *layout,
                      const struct elf_symbol *s)
{
    static const char letters[ELF_SEGMENTS] = {
        [ELF_TEXT] = 't', [ELF_RODATA] = 'r', [ELF_DATA] = 'd'
    };
    const struct elf_section *in = &o->sections[s->section];
    char letter = letters[layout->places[s->section].segment];

    if (in->type == ELF_NOBITS)
        letter = 'b';
    else if (letter == 't' && elf_type(s) == ELF_OBJECT)
        letter = 'r';
    return (char)(elf_bind(s) == ELF_LOCAL ? letter : letter - 'a' + 'A');
}

static int compare_symbols(const void *a, const void *b)
{
    const struct module_symbol *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return 0;
}

/* find_outer - find for each symbol the innermost symbol around it: the last one before
 * it that reaches beyond its start. A symbol without a size, unless it is inside another
 * one, gets everything up to the next symbol.
 */
static void find_outer(struct module_symbol *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t outer = i ? (uint32_t)(i - 1) : SYMBOL_NONE;

        while (outer != SYMBOL_NONE && s[outer].start + s[outer].size <= s[i].start)
            outer = s[outer].outer;
        s[i].outer = outer;
        if (!s[i].size && outer == SYMBOL_NONE && i + 1 < count)
            s[i].size = (uint32_t)(s[i + 1].start - s[i].start);
    }
}

int symbols_make(struct module *m, const struct elf_object *o,
                 const struct elf_layout *layout, const uint64_t *values)
{
    size_t count = 0;

    m->symbols = kzalloc(o->symbol_count * sizeof(*m->symbols));
    if (!m->symbols)
        return -ENOMEM;
    for (size_t i = 0; i < o->symbol_count; i++) {
        const struct elf_symbol *s = &o->symbols[i];
        struct module_symbol *out = &m->symbols[count];
        const char *params;

        if (!is_wanted_symbol(o, layout, s))
            continue;
        out->start = values[i];
        out->size = (uint32_t)s->size;
        out->type = letter_of(o, layout, s);
        out->is_function = elf_type(s) == ELF_FUNC;
        out->name = name_keep(elf_symbol_name(o, s));
        params = out->is_function ? elf_params(o, out->name) : NULL;
        out->params = params ? name_keep(params) : NULL;
        if (!out->name || !out->params != !params)
            return -ENOMEM;
        count++;
    }
    m->facts.symbol_count = count;
    qsort(m->symbols, count, sizeof(*m->symbols), compare_symbols);
    find_outer(m->symbols, count);
    m->facts.symbols = m->symbols;
    return 0;
}

bool symbols_export(const struct module *m, const char *name, uint64_t *value)
{
    for (size_t i = 0; i < m->facts.symbol_count; i++) {
        const struct module_symbol *s = &m->symbols[i];

        if (s->type > 'Z' || strcmp(s->name, name) != 0)
            continue;
        *value = s->start;
        return true;
    }
    return false;
}

/* ---- lookups ---- */

static const struct module *module_at(uintptr_t addr)
{
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        const struct module *m = __atomic_load_n(&modules[i], __ATOMIC_ACQUIRE);

        if (m && addr >= m->facts.memory && addr < m->facts.memory_end)
            return m;
    }
    return NULL;
}

static void report_symbol(const struct module *m, const struct module_symbol *s,
                          size_t offset, struct ksym *out)
{
    *out = (struct ksym){ .name = s->name,
                          .start = s->start,
                          .size = s->size,
                          .offset = offset,
                          .type = s->type,
                          .module = m->facts.name,
                          .params = s->params };
}

static int symbol_at(const struct module *m, uintptr_t addr, struct ksym *out)
{
    size_t low = 0, high = m->facts.symbol_count;
    uint32_t i;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->symbols[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    for (i = low ? (uint32_t)(low - 1) : SYMBOL_NONE; i != SYMBOL_NONE;
         i = m->symbols[i].outer) {
        const struct module_symbol *s = &m->symbols[i];

        if (addr - s->start >= s->size)
            continue;
        report_symbol(m, s, addr - s->start, out);
        return 0;
    }
    return -ENOENT;
}

static int module_symbol_at(uintptr_t addr, struct ksym *out)
{
    const struct module *m;
    int err = -ENOENT;

    if (!window_contains(addr))
        return -ENOENT;
    preempt_disable();
    m = module_at(addr);
    if (m)
        err = symbol_at(m, addr, out);
    preempt_enable_no_resched();
    return err;
}

/* An iterator is the slot of a module, and the index of a symbol in its low 32 bits. */
#define ITER_SHIFT 32

static bool is_called(const struct module *m, const struct module_symbol *s,
                      const char *name)
{
    const char *colon = strchr(name, ':');
    size_t len;

    if (!colon)
        return strcmp(s->name, name) == 0;
    len = (size_t)(colon - name);
    return strncmp(m->facts.name, name, len) == 0 && !m->facts.name[len] &&
           strcmp(s->name, colon + 1) == 0;
}

static bool next_in(const struct module *m, size_t *i, const char *name, struct ksym *out)
{
    for (; *i < m->facts.symbol_count; ++*i) {
        const struct module_symbol *s = &m->symbols[*i];

        if (name && !is_called(m, s, name))
            continue;
        report_symbol(m, s, 0, out);
        ++*i;
        return true;
    }
    return false;
}

static bool module_symbol_next(const char *name, size_t *iter, struct ksym *out)
{
    size_t slot = *iter >> ITER_SHIFT, i = (uint32_t)*iter;
    bool found = false;

    preempt_disable();
    for (; slot < MODULES_MAX && !found; slot++, i = 0) {
        const struct module *m = __atomic_load_n(&modules[slot], __ATOMIC_ACQUIRE);

        if (m)
            found = next_in(m, &i, name, out);
        if (found)
            *iter = slot << ITER_SHIFT | i;
    }
    preempt_enable_no_resched();
    return found;
}

/* module_behind - return the module with the lowest text above @addr. */
static const struct module *module_behind(uintptr_t addr)
{
    const struct module *best = NULL;

    for (unsigned i = 0; i < MODULES_MAX; i++) {
        const struct module *m = __atomic_load_n(&modules[i], __ATOMIC_ACQUIRE);

        if (m && m->facts.text > addr && (!best || m->facts.text < best->facts.text))
            best = m;
    }
    return best;
}

/* module_symbol_get - get symbol @i of all modules: by address, module by module. While
 * modules come and go, a list that is made with this function may have a symbol twice, or
 * leave it out.
 */
static bool module_symbol_get(size_t i, struct ksym *out)
{
    const struct module *m;

    preempt_disable();
    m = module_behind(0);
    while (m && i >= m->facts.symbol_count) {
        i -= m->facts.symbol_count;
        m = module_behind(m->facts.text);
    }
    if (m)
        report_symbol(m, &m->symbols[i], 0, out);
    preempt_enable_no_resched();
    return m;
}

static uintptr_t module_fixup_of(uintptr_t ip)
{
    const struct module *m;
    uintptr_t fixup = 0;

    if (!window_contains(ip))
        return 0;
    preempt_disable();
    m = module_at(ip);
    if (m)
        fixup = extable_search((const struct extable_entry *)m->extable.start,
                               m->extable.count, ip);
    preempt_enable_no_resched();
    return fixup;
}

static bool has_address(const struct module_table *t, uintptr_t addr)
{
    const uintptr_t *records = (const uintptr_t *)t->start;

    for (size_t i = 0; i < t->count; i++)
        if (records[i] == addr)
            return true;
    return false;
}

static bool is_sorted_in(const struct module_table *t, uintptr_t addr)
{
    const uintptr_t *records = (const uintptr_t *)t->start;
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (records[middle] == addr)
            return true;
        if (records[middle] < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool module_text_contains(uintptr_t addr, size_t len)
{
    const struct module *m;
    bool inside;

    if (!window_contains(addr))
        return false;
    preempt_disable();
    m = module_at(addr);
    inside = m && addr >= m->facts.text && addr < m->facts.text_end &&
             len <= m->facts.text_end - addr;
    preempt_enable_no_resched();
    return inside;
}

bool module_text_get(size_t i, uintptr_t *start, uintptr_t *end)
{
    const struct module *m = __atomic_load_n(&modules[i], __ATOMIC_ACQUIRE);

    if (!m)
        return false;
    *start = m->facts.text;
    *end = m->facts.text_end;
    return true;
}

bool module_is_entry(uintptr_t addr)
{
    const struct module *m;
    bool is;

    if (!window_contains(addr))
        return false;
    preempt_disable();
    m = module_at(addr);
    is = m && is_sorted_in(&m->facts.entries, addr);
    preempt_enable_no_resched();
    return is;
}

bool module_is_noretprobe(uintptr_t addr)
{
    const struct module *m;
    bool is;

    if (!window_contains(addr))
        return false;
    preempt_disable();
    m = module_at(addr);
    is = m && has_address(&m->facts.noretprobe, addr);
    preempt_enable_no_resched();
    return is;
}

/* ---- modules that have gone ---- */

#define GONE_MAX 8

/* The last modules that have gone, so that the report of a stale address can name its
 * module. Readers take no lock: so the name is erased before the addresses change, and
 * written after that.
 */
static struct gone {
    const char *name;
    uintptr_t start, end;
} gone[GONE_MAX];
static unsigned gone_next; /* guarded by the modules' mutex */

void symbols_gone(const struct module *m)
{
    struct gone *g = &gone[gone_next++ % GONE_MAX];

    __atomic_store_n(&g->name, NULL, __ATOMIC_SEQ_CST);
    g->start = m->facts.memory;
    g->end = m->facts.memory_end;
    __atomic_store_n(&g->name, m->facts.name, __ATOMIC_RELEASE);
}

/* gone_at - return the name of the module that was the last one at @addr; NULL: none. */
static const char *gone_at(uintptr_t addr, size_t *offset)
{
    unsigned newest = gone_next;

    if (addr >= kernel_text_end() && addr < (uintptr_t)_init_end) {
        *offset = addr - (uintptr_t)_init_text;
        return INIT_TEXT_NAME;
    }

    for (unsigned i = 1; i <= GONE_MAX; i++) {
        const struct gone *g = &gone[(newest - i) % GONE_MAX];
        const char *name = __atomic_load_n(&g->name, __ATOMIC_ACQUIRE);

        if (!name || addr < g->start || addr >= g->end)
            continue;
        *offset = addr - g->start;
        return name;
    }
    return NULL;
}

INIT void symbols_start(void)
{
    static const struct ksyms_more more = { module_symbol_at, module_symbol_next,
                                            module_symbol_get, gone_at };

    ksyms_more = &more;
    extable_more = module_fixup_of;
}

/* build.c - makes an object that was checked into code that can be executed. No CPU can
 * see it yet. Each step may refuse; then module_tear() undoes the steps before it.
 *
 *   1. It gets memory in the window, all of it writable and none of it executable.
 *   2. The values of all symbols are computed, then all bytes are written.
 *   3. The five entry NOPs of a function become one, as kernel/debug/entry_nops.py makes
 *      them for the image: listing and memory must agree on the first instruction of a
 *      function.
 *   4. Tables are sorted, and their addresses are checked. A fix-up is relative to its
 *      own place, so fix-ups are sorted in place, while that memory can be written.
 *   5. The table of symbols is made, and the list of places that hold an address of text.
 *   6. Text becomes executable and read-only, rodata read-only.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/base/nokprobe.h"
#include "kernel/debug/marker.h"
#include "kernel/debug/static_key.h"
#include "kernel/memmap.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/module/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INT3 0xcc
#define NOP_LEN 5

_Static_assert((int)ELF_TEXT == (int)WINDOW_TEXT &&
                   (int)ELF_RODATA == (int)WINDOW_RODATA &&
                   (int)ELF_DATA == (int)WINDOW_DATA,
               "segments are parts of the window");

/* What module_build() works on. */
struct build {
    struct module *m;
    const struct elf_object *o;
    struct elf_layout layout;
    struct elf_place *places;
    uint64_t *values;
    uint64_t base[ELF_SEGMENTS];
    char *why;
};

static int build_refuse(struct build *b, const char *what, uintptr_t addr)
{
    snprintf(b->why, MODULE_WHY_MAX, "%s (at 0x%lx)", what, addr);
    return -ENOEXEC;
}

static int refuse_elf(struct build *b, const struct elf_reject *r)
{
    snprintf(b->why, MODULE_WHY_MAX, "%s: %s", r->name ? r->name : "the file",
             elf_reason_text(r->reason));
    return -ENOEXEC;
}

/* ---- 1, 2 ---- */

static int get_memory(struct build *b)
{
    size_t pages[WINDOW_PARTS];

    b->places = kmalloc(b->o->section_count * sizeof(*b->places));
    b->values = kmalloc(b->o->symbol_count * sizeof(*b->values));
    if (!b->places || !b->values)
        return -ENOMEM;
    elf_lay_out(b->o, b->places, &b->layout);
    for (unsigned i = 0; i < WINDOW_PARTS; i++) {
        pages[i] = align_up(b->layout.size[i], PAGE_SIZE) / PAGE_SIZE;
        b->m->size += b->layout.size[i];
    }
    if (window_alloc(&b->m->window, pages))
        return -ENOMEM;
    for (unsigned i = 0; i < ELF_SEGMENTS; i++)
        b->base[i] = b->m->window.start[i];
    memset(window_writable(&b->m->window, WINDOW_TEXT), INT3,
           pages[WINDOW_TEXT] * PAGE_SIZE);
    return 0;
}

/* is_of_boot - is @addr in what only boot needs? A module may not use that: it is freed
 * while the module stays.
 */
static bool is_of_boot(uintptr_t addr)
{
    return addr > (uintptr_t)_init_text && addr < (uintptr_t)_init_end;
}

/* find_name - find a global symbol: first in the image, then in the modules. A module
 * that has it is noted as used.
 */
static int find_name(const char *name, uint64_t *value, void *arg)
{
    struct module *m = arg;
    struct ksym sym;
    size_t iter = 0;

    while (ksyms_next(name, &iter, &sym) && !sym.module) {
        if (sym.type > 'Z' || is_of_boot(sym.start))
            continue;
        *value = sym.start;
        return 0;
    }
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        if (!modules[i] || modules[i]->state != MODULE_LIVE ||
            !symbols_export(modules[i], name, value))
            continue;
        m->imports |= BIT(i);
        return 0;
    }
    return -ENOENT;
}

static int build_fill(struct build *b)
{
    struct elf_reject why = { 0 };
    uint8_t *image[ELF_SEGMENTS];
    int err;

    for (unsigned i = 0; i < ELF_SEGMENTS; i++)
        image[i] = window_writable(&b->m->window, (enum window_part)i);
    err = elf_resolve(b->o, &b->layout, b->base, find_name, b->m, b->values, &why);
    if (!err)
        err = elf_write(b->o, &b->layout, b->base, b->values, image, &why);
    return err ? refuse_elf(b, &why) : 0;
}

/* ---- 3 ---- */

static struct module_table table_of(const struct build *b, enum elf_role role)
{
    const struct elf_table *t = &b->layout.tables[role];

    enum elf_segment segment = role == ELF_MARKERS ? ELF_DATA : ELF_RODATA;

    return (struct module_table){ b->base[segment] + t->offset,
                                  t->len / elf_record_len(role) };
}

static bool is_text(const struct build *b, uintptr_t addr, size_t len)
{
    size_t size = b->layout.size[ELF_TEXT];

    return addr >= b->base[ELF_TEXT] && addr - b->base[ELF_TEXT] <= size &&
           len <= size - (addr - b->base[ELF_TEXT]);
}

static int make_entry_nops(struct build *b)
{
    static const uint8_t nop[NOP_LEN] = { 0x0f, 0x1f, 0x44, 0, 0 };
    static const uint8_t nops[NOP_LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
    struct module_table *t = &b->m->facts.entries;
    uintptr_t *at;

    *t = table_of(b, ELF_ENTRIES);
    at = (uintptr_t *)t->start;
    for (size_t i = 0; i < t->count; i++) {
        uint8_t *code = (uint8_t *)window_writable(&b->m->window, WINDOW_TEXT) +
                        (at[i] - b->base[ELF_TEXT]);

        if (!is_text(b, at[i], NOP_LEN) ||
            (memcmp(code, nops, NOP_LEN) != 0 && memcmp(code, nop, NOP_LEN - 1) != 0))
            return build_refuse(b, "no entry NOPs where the object says", at[i]);
        memcpy(code, nop, NOP_LEN);
    }
    qsort(at, t->count, sizeof(*at), compare_addresses);
    return 0;
}

/* ---- 4 ---- */

/* must_be_text - refuse the module if a record of @t is not an address of its own text.
 */
static int must_be_text(struct build *b, const struct module_table *t, const char *what)
{
    const uintptr_t *at = (const uintptr_t *)t->start;

    for (size_t i = 0; i < t->count; i++)
        if (!is_text(b, at[i], 1))
            return build_refuse(b, what, at[i]);
    return 0;
}

static bool is_own_string(const struct build *b, const char *s)
{
    for (unsigned i = ELF_RODATA; i < ELF_SEGMENTS; i++) {
        uintptr_t start = b->base[i], end = start + b->layout.size[i];
        const char *bytes = window_writable(&b->m->window, (enum window_part)i);

        if ((uintptr_t)s >= start && (uintptr_t)s < end)
            return memchr(bytes + ((uintptr_t)s - start), 0, end - (uintptr_t)s);
    }
    return false;
}

/* build_is_off - is there a marker at @at that is switched off: mov $0,%al; test %al,%al? */
static bool build_is_off(const struct build *b, uintptr_t at)
{
    static const uint8_t off[] = { 0xb0, 0, 0x84, 0xc0 };
    const char *text = window_writable(&b->m->window, WINDOW_TEXT);

    return is_text(b, at, sizeof(off)) &&
           memcmp(text + (at - b->base[ELF_TEXT]), off, sizeof(off)) == 0;
}

/* check_markers - check that each marker has a name and a format, which begin and end in
 * the module's memory; and that each place of a marker is in the module's own text, and
 * belongs to one of its markers.
 */
static int check_markers(struct build *b)
{
    const struct module_table *t = &b->m->facts.markers;
    const struct marker_site *sites = (const struct marker_site *)t->start;
    const struct marker_insn *insns =
        (const struct marker_insn *)b->m->facts.marker_insns.start;

    for (size_t i = 0; i < t->count; i++)
        if (!is_own_string(b, sites[i].name) || !is_own_string(b, sites[i].format) ||
            sites[i].hooks)
            return build_refuse(b, "a marker without a name or a format", t->start);
    for (size_t i = 0; i < b->m->facts.marker_insns.count; i++)
        if (!build_is_off(b, insns[i].insn) || insns[i].site < sites ||
            insns[i].site >= sites + t->count ||
            ((uintptr_t)insns[i].site - t->start) % sizeof(*sites))
            return build_refuse(b, "a marker that is not its own", insns[i].insn);
    return 0;
}

/* is_variable - is @addr a variable of the module, the image, or a module that it uses?
 */
static bool is_variable(const struct build *b, uintptr_t addr)
{
    uintptr_t start = b->base[ELF_DATA];

    if (addr >= (uintptr_t)_sdata && addr < (uintptr_t)_ebss)
        return true;
    if (addr >= start && addr < start + b->layout.size[ELF_DATA])
        return true;
    for (unsigned i = 0; i < MODULES_MAX; i++)
        if (b->m->imports & BIT(i) && addr >= modules[i]->facts.memory &&
            addr < modules[i]->facts.memory_end)
            return true;
    return false;
}

static int check_static_keys(struct build *b)
{
    static const uint8_t nop[NOP_LEN] = { 0x0f, 0x1f, 0x44, 0, 0 };
    const struct module_table *t = &b->m->facts.static_keys;
    const struct static_key_insn *keys = (const struct static_key_insn *)t->start;
    const char *text = window_writable(&b->m->window, WINDOW_TEXT);

    for (size_t i = 0; i < t->count; i++)
        if (!is_text(b, keys[i].insn, NOP_LEN) || !is_text(b, keys[i].target, 1) ||
            memcmp(text + (keys[i].insn - b->base[ELF_TEXT]), nop, NOP_LEN) != 0 ||
            !is_variable(b, (uintptr_t)keys[i].key))
            return build_refuse(b, "a static key that is none", keys[i].insn);
    return 0;
}

static int check_nokprobe_ranges(struct build *b)
{
    const struct module_table *t = &b->m->facts.nokprobe_ranges;
    const struct nokprobe_range *r = (const struct nokprobe_range *)t->start;

    for (size_t i = 0; i < t->count; i++)
        if (r[i].end <= r[i].start || !is_text(b, r[i].start, r[i].end - r[i].start) ||
            !is_own_string(b, r[i].why))
            return build_refuse(b, "a blacklisted range that is not of its text",
                                r[i].start);
    return 0;
}

static int check_fixups(struct build *b)
{
    struct extable_entry *e = (struct extable_entry *)b->m->extable.start;

    for (size_t i = 0; i < b->m->extable.count; i++) {
        uintptr_t insn = (uintptr_t)&e[i].insn_off + (uintptr_t)(intptr_t)e[i].insn_off;
        uintptr_t fixup =
            (uintptr_t)&e[i].fixup_off + (uintptr_t)(intptr_t)e[i].fixup_off;

        if (!is_text(b, insn, 1) || !is_text(b, fixup, 1))
            return build_refuse(b, "a fix-up that is not about its own text", insn);
    }
    extable_sort(e, b->m->extable.count);
    return 0;
}

static int take_tables(struct build *b)
{
    struct module *m = b->m;
    const struct elf_table *old = &b->layout.tables[ELF_KPROBES_CODE];
    int err;

    m->facts.nokprobe = table_of(b, ELF_NOKPROBE);
    m->facts.nokprobe_ranges = table_of(b, ELF_NOKPROBE_RANGES);
    m->facts.noretprobe = table_of(b, ELF_NORETPROBE);
    m->facts.kprobes_text = b->base[ELF_TEXT] + old->offset;
    m->facts.kprobes_end = m->facts.kprobes_text + old->len;
    m->extable = table_of(b, ELF_EXTABLE);
    m->init = table_of(b, ELF_CONSTRUCTORS);
    m->fini = table_of(b, ELF_DESTRUCTORS);
    m->workloads = table_of(b, ELF_WORKLOADS);
    m->facts.markers = table_of(b, ELF_MARKERS);
    m->facts.marker_insns = table_of(b, ELF_MARKER_INSNS);
    m->facts.static_keys = table_of(b, ELF_STATIC_KEYS);
    err = must_be_text(b, &m->facts.nokprobe, "NOKPROBE of what is not its own");
    if (!err)
        err = check_nokprobe_ranges(b);
    if (!err)
        err = must_be_text(b, &m->facts.noretprobe, "NORETPROBE of what is not its own");
    if (!err)
        err = must_be_text(b, &m->init, "a constructor that is not its own");
    if (!err)
        err = must_be_text(b, &m->fini, "a destructor that is not its own");
    if (!err)
        err = check_markers(b);
    if (!err)
        err = check_static_keys(b);
    return err ? err : check_fixups(b);
}

/* ---- 5 ---- */

/* is_inside_other - is @addr in a function elsewhere, but not its start? Data counts, too: it
 * does no harm.
 */
static bool is_inside_other(uintptr_t addr)
{
    struct ksym sym;

    return !ksyms_at(addr, &sym) && sym.offset;
}

/* pointer_of - is the address that relocation @r writes, into a section that is @role, an
 * address in text to which code may go? Branches and relative operands in the module's own
 * text do not count, since they are found by decoding, nor do tables about the text. A
 * distance in a fix-up is relative to its own place, so it is known what address it stands
 * for. A distance in code is relative to its end.
 * @section: the address of the section
 */
static bool pointer_of(struct build *b, const struct elf_rela *r, enum elf_role role,
                       uintptr_t section, struct module_pointer *out)
{
    bool is_distance = r->type == ELF_R_PC32 || r->type == ELF_R_PLT32;
    bool is_code = role == ELF_CODE || role == ELF_KPROBES_CODE;

    out->place = section + r->offset;
    out->to = b->values[r->symbol] + (uint64_t)r->addend;
    if (!is_text(b, out->to, 1)) {
        out->to += is_distance && is_code ? sizeof(int32_t) : 0;
        out->kind = MODULE_POINTER_ELSEWHERE;
        return is_inside_other(out->to);
    }
    out->kind = is_code                              ? MODULE_POINTER_CODE
                : is_distance && role != ELF_EXTABLE ? MODULE_POINTER_DIFFERENCE
                                                     : MODULE_POINTER_DATA;
    return !(is_distance && is_code) && role != ELF_MARKER_INSNS &&
           role != ELF_NOKPROBE_RANGES;
}

/* pointers_find - write all pointers to @out, which may be NULL. Return: how many. */
static size_t pointers_find(struct build *b, struct module_pointer *out)
{
    struct module_pointer p;
    size_t count = 0;

    for (size_t i = 1; i < b->o->section_count; i++) {
        const struct elf_section *s = &b->o->sections[i];
        const struct elf_place *in = &b->places[s->info];
        const struct elf_rela *r;

        if (s->type != ELF_RELA || in->segment == ELF_NOWHERE)
            continue;
        r = elf_content(b->o, s);
        for (size_t k = 0; k < s->size / sizeof(*r); k++) {
            if (!pointer_of(b, &r[k], elf_role_of(b->o, &b->o->sections[s->info]),
                            b->base[in->segment] + in->offset, &p))
                continue;
            if (out)
                out[count] = p;
            count++;
        }
    }
    return count;
}

static int pointers_make(struct build *b)
{
    struct module_facts *f = &b->m->facts;

    f->pointer_count = pointers_find(b, NULL);
    b->m->pointers = kmalloc((f->pointer_count + 1) * sizeof(*b->m->pointers));
    if (!b->m->pointers)
        return -ENOMEM;
    pointers_find(b, b->m->pointers);
    f->pointers = b->m->pointers;
    return 0;
}

/* ---- all of it ---- */

static void take_extent(struct build *b)
{
    struct module_facts *f = &b->m->facts;
    const struct window *w = &b->m->window;

    f->text = w->start[WINDOW_TEXT];
    f->text_end = f->text + b->layout.size[ELF_TEXT];
    f->memory = f->text;
    f->memory_end = w->start[WINDOW_DATA] + w->pages[WINDOW_DATA] * PAGE_SIZE;
}

static int build_all(struct build *b)
{
    int err = get_memory(b); /* 1 */

    if (!err)
        err = build_fill(b); /* 2 */
    if (!err)
        err = make_entry_nops(b); /* 3 */
    if (!err)
        err = take_tables(b); /* 4 */
    if (err)
        return err;
    take_extent(b);
    err = symbols_make(b->m, b->o, &b->layout, b->values); /* 5 */
    if (!err)
        err = pointers_make(b);
    return err ? err : window_seal(&b->m->window); /* 6 */
}

void module_tear(struct module *m)
{
    if (m->window.start[WINDOW_TEXT])
        window_free(&m->window);
    kfree(m->symbols);
    kfree(m->pointers);
    m->symbols = NULL;
    m->pointers = NULL;
}

int module_build(struct module *m, const struct elf_object *o, char *why)
{
    struct build b = { .m = m, .o = o, .why = why };
    int err = build_all(&b);

    kfree(b.places);
    kfree(b.values);
    if (err)
        module_tear(m);
    return err;
}

/* parts.h - private to kernel/module. */
#pragma once

#include "kernel/debug/ksyms.h"
#include "kernel/mm/window.h"
#include "kernel/module/elf_link.h"
#include "kernel/module/module.h"

struct module_symbol {
    uintptr_t start;
    const char *name; /* of name_keep() */
    uint32_t size;
    uint32_t outer; /* index of the innermost one around it, or SYMBOL_NONE */
    char type;
};
#define SYMBOL_NONE UINT32_MAX

/* Locks:  I immutable once published   M the modules' mutex */
struct module {
    struct module_facts facts; /* [I] */
    enum module_state state;   /* [M] */
    bool destroyed;            /* [M] the destructors have run */
    int owner;                 /* [M] tid of the thread that loads or unloads it, or 0 */
    int refused;               /* by the constructors: an errno */
    unsigned slot;             /* [I] index in modules[] */
    uint64_t imports;          /* [I] slots of modules that it uses */
    struct window window;      /* [I] */
    size_t size;               /* [I] bytes of all segments */
    struct module_symbol *symbols;  /* [I] by address */
    size_t symbol_count;            /* [I] */
    uintptr_t *pointers;            /* [I] facts.pointed_at */
    struct module_table extable;    /* [I] */
    struct module_table init, fini; /* [I] addresses of functions */
    struct module_table workloads;  /* [I] */
    char inside[MODULE_WHY_MAX];    /* [M] which thread keeps it; "" none */
};

/* Published last, withdrawn first. Readers have preemption off, and what they have seen stays
 * until quiescence.
 */
extern struct module *modules[MODULES_MAX];
extern const struct module_watch *module_watch; /* immutable after boot */

/* ---- symbols.c ---- */

/* symbols_make - the table of @m, from values of elf_resolve(). Return: 0; -ENOMEM. */
int symbols_make(struct module *m, const struct elf_object *o,
                 const struct elf_layout *layout, const uint64_t *values);
/* symbols_start - let ksyms.h and extable.h ask modules. Context: boot. */
void symbols_start(void);
/* symbols_gone - @m is about to go; its name stays for reports of stale addresses.
 * Locks: that of modules held.
 */
void symbols_gone(const struct module *m);
/* symbols_export - a global symbol of @m. Return: false: there is none. */
bool symbols_export(const struct module *m, const char *name, uint64_t *value);

/* ---- build.c ---- */

/* module_build - all that happens to an object before anything can see it: see there.
 * Return: 0; -ENOEXEC, -ENOMEM; then nothing is left.
 */
int module_build(struct module *m, const struct elf_object *o, char *why);
/* module_tear - undo module_build(). */
void module_tear(struct module *m);

/* ---- inside.c ---- */

/* inside_look - is a thread in the text of @m, or about to return there? The thread that asks
 * is not looked at, but for where it was called from. Other threads are given some time.
 * @why: gets a sentence
 * Return: 0; -EBUSY; -EDEADLK the caller itself.
 */
int inside_look(const struct module *m, char *why);

/* ---- init_text.c ---- */

#define INIT_TEXT_NAME "boot" /* in reports of addresses that were there */

/* ---- commands.c ---- */

int module_add_commands(void);

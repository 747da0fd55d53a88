/* parts.h - what the files of kernel/module share, private to them. */
#pragma once

#include "kernel/debug/ksyms.h"
#include "kernel/mm/window.h"
#include "kernel/module/elf_link.h"
#include "kernel/module/module.h"

/* Locks:  I immutable once published   M the modules' mutex */
struct module {
    struct module_facts facts; /* [I] */
    enum module_state state;   /* [M] */
    bool destroyed;            /* [M] the destructors have run */
    int owner;                 /* [M] tid of the thread that loads or unloads it, or 0 */
    unsigned number;           /* [I] of this load; the number of a later one is higher */
    int refused;               /* [M] by the constructors: an errno */
    unsigned slot;             /* [I] index in modules[] */
    uint64_t imports;          /* [I] slots of modules that it uses */
    struct window window;      /* [I] */
    size_t size;               /* [I] bytes of all segments */
    struct module_symbol *symbols;   /* [I] facts.symbols */
    struct module_pointer *pointers; /* [I] facts.pointers */
    struct module_table extable;     /* [I] */
    struct module_table init, fini;  /* [I] addresses of functions */
    struct module_table workloads;   /* [I] */
    char inside[MODULE_WHY_MAX];     /* [M] what keeps it, in words; "" */
};

/* A module is published here when its memory is complete, and withdrawn before any of it
 * is freed. Readers have preemption off: what they have found stays until quiescence.
 */
extern struct module *modules[MODULES_MAX];

/* ---- symbols.c ---- */

/* symbols_make - make the table of symbols of @m. @values: from elf_resolve(). Return: 0;
 * -ENOMEM.
 */
int symbols_make(struct module *m, const struct elf_object *o,
                 const struct elf_layout *layout, const uint64_t *values);
/* symbols_start - let lookups of ksyms.h and extable.h ask modules, too. Context: boot.
 */
void symbols_start(void);
/* symbols_gone - note name and addresses of @m, which is about to go, for reports of
 * stale addresses. Locks: the modules' lock held.
 */
void symbols_gone(const struct module *m);
/* symbols_export - find a global symbol of @m. Return: false: there is none. */
bool symbols_export(const struct module *m, const char *name, uint64_t *value);

/* ---- build.c ---- */

/* module_build - make the module @m of the checked object @o, which nothing else can see
 * yet: see build.c. Return: 0; -ENOEXEC, -ENOMEM; then nothing is left.
 */
int module_build(struct module *m, const struct elf_object *o, char *why);
/* module_tear - undo module_build(). */
void module_tear(struct module *m);

/* ---- inside.c ---- */

/* inside_look - is a thread in the text of @m, or about to return there? Of the calling
 * thread only its callers are looked at. Other threads are given some time to leave.
 * @why: receives a sentence, if a thread is inside
 * Return: 0: no; -EBUSY: another thread is; -EDEADLK: the calling thread is.
 */
int inside_look(const struct module *m, char *why);

/* ---- init_text.c ---- */

#define INIT_TEXT_NAME "boot" /* in reports of addresses that were there */

/* ---- commands.c ---- */

int module_add_commands(void);

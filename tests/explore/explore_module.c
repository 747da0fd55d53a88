/* explore_module.c - a module is unloaded while a hit is about to call its handler, and while
 * other CPUs look up addresses of it, and of modules that have gone before.
 */
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/extable.h"
#include "kernel/module/module.h"
#include "kernel/module/parts.h"
#include "kernel/work/work.h"
#include "tests/explore/machine.h"

#include <string.h>

#define TEXT_LEN 64

static uint64_t *text;    /* the memory of the module: its text and its table */
static uint64_t *handler; /* what a hit finds; it lies in the text */
static bool is_going; /* probes of others have left the text, and its symbols follow */

/* ---- the parts of the kernel around the two files ---- */

int elf_check(struct elf_object *o, const void *file UNUSED, size_t len UNUSED,
              struct elf_reject *why UNUSED)
{
    *o = (struct elf_object){ 0 }; /* a file without sections */
    return 0;
}

int module_build(struct module *m, const struct elf_object *o UNUSED, char *why UNUSED)
{
    text = explore_alloc(2 * TEXT_LEN);
    text[TEXT_LEN / 8] = (uintptr_t)text;
    m->facts.memory = m->facts.text = (uintptr_t)text;
    m->facts.memory_end = m->facts.text_end = (uintptr_t)text + TEXT_LEN;
    m->facts.noretprobe = (struct module_table){ (uintptr_t)text + TEXT_LEN, 1 };
    return 0;
}

void module_tear(struct module *m)
{
    explore_free((void *)m->facts.memory);
}

int inside_look(const struct module *m UNUSED, char *why UNUSED)
{
    return 0; /* a hit on its way to a handler is not in the text yet */
}

int workload_add(const struct workload *list UNUSED, size_t count UNUSED)
{
    return 0;
}

int workload_remove(uintptr_t start UNUSED, uintptr_t end UNUSED)
{
    return 0;
}

int vfs_remove_files(uintptr_t start UNUSED, uintptr_t end UNUSED)
{
    return 0;
}

bool shell_has_command(uintptr_t start UNUSED, uintptr_t end UNUSED)
{
    return false;
}

int thread_tid(void)
{
    return (int)explore_cpu() + 1;
}

static int comes(const struct module_facts *m UNUSED, char *why UNUSED)
{
    handler = text;
    return 0;
}

static void leaves(const struct module_facts *m UNUSED)
{
    WRITE_ONCE(handler, NULL);
}

static void goes(const struct module_facts *m UNUSED)
{
    WRITE_ONCE(is_going, true);
}

static void ignore(const struct module_facts *m UNUSED)
{
}

static const struct module_watch watch = {
    .comes = comes, .leaves = leaves, .goes = goes, .gone = ignore
};

const struct ksyms_more *ksyms_more;

uintptr_t (*extable_more)(uintptr_t ip);

uintptr_t kernel_text_end(void)
{
    return UINTPTR_MAX;
}

/* ---- actors ---- */

static struct module old = { .facts = { .name = "old" } };

static void start(void)
{
    char why[MODULE_WHY_MAX] = "";

    explore_check(module_load("m", "", 0, why) == -ENOSYS && *why,
                  "none without a watch");
    module_watch = &watch;
    for (unsigned i = 0; i < MODULES_MAX; i++)
        modules[i] = &old;
    *why = '\0';
    explore_check(module_load("m", "", 0, why) == -ENOSPC && *why, "none without a slot");
    memset(modules, 0, sizeof(modules));
    explore_check(!module_load("m", "", 0, why), "the module is loaded");

    symbols_start();
    old.facts.memory = (uintptr_t)text + 8 * TEXT_LEN;
    old.facts.memory_end = old.facts.memory + TEXT_LEN;
    for (unsigned i = 0; i < 8; i++) /* all that is remembered */
        symbols_gone(&old);
}

static void unload(void)
{
    char why[MODULE_WHY_MAX];

    explore_check(!module_unload("m", why), "the module goes");
}

static void hit(void)
{
    const uint64_t *at;

    machine_enter();
    at = READ_ONCE(handler);
    if (at) {
        explore_seen("a handler runs");
        explore_check(!*(const volatile uint64_t *)at, "the text is there");
        explore_check(!READ_ONCE(is_going), "its fix-ups and symbols are there");
    }
    machine_leave();
}

static void look_up(void)
{
    uintptr_t addr = (uintptr_t)text;

    if (module_text_contains(addr, 1))
        explore_seen("a lookup finds the module");
    module_is_noretprobe(addr);
}

static void look_back(void)
{
    const char *name;
    size_t offset;

    name = ksyms_more->gone(old.facts.memory, &offset);
    explore_check(name == old.facts.name, "an address keeps the name of its last module");
}

static void end(void)
{
    explore_check(explore_blocks() == 1, "nothing is left but the name");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "unload", unload, 0, EXPLORE_THREAD },
                { "hit", hit, 1, EXPLORE_THREAD },
                { "lookup", look_up, 2, EXPLORE_THREAD },
                { "look back", look_back, 2, EXPLORE_THREAD } },
    .outcomes = { "a handler runs", "a lookup finds the module" },
};

/* module.h - objects that are loaded into the running kernel, and taken out again.
 *
 * A module is what EXTRA_OBJS would link in: it may use each function and variable of the
 * image and of the modules before it. Its constructors run when it is in place, its
 * destructors before it goes.
 *
 * The kernel knows nothing of probes: struct module_watch is how they hear of text that comes
 * and goes.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_NAME_MAX 32 /* bytes, the NUL included */
#define MODULES_MAX 64
#define MODULE_WHY_MAX 200

enum module_state {
    MODULE_COMING, /* its constructors may be running */
    MODULE_LIVE,
    MODULE_GOING, /* it is being taken out, or is kept by a thread that is still inside */
};

struct module_table {
    uintptr_t start;
    size_t count; /* records */
};

/* What others may know of a module, as long as they are told so by a watch or a lookup. */
struct module_facts {
    const char *name; /* valid for ever */
    uintptr_t text, text_end;
    uintptr_t memory, memory_end;        /* all of it, text included */
    struct module_table entries;         /* functions of a compiler; sorted addresses */
    struct module_table nokprobe;        /* addresses of functions */
    struct module_table nokprobe_ranges; /* struct nokprobe_range */
    struct module_table noretprobe;      /* as nokprobe */
    struct module_table markers;         /* struct marker_site */
    struct module_table marker_insns;    /* struct marker_insn */
    struct module_table static_keys;     /* struct static_key_insn */
    uintptr_t kprobes_text, kprobes_end; /* text that was marked by its section */
    /* Addresses of its text that something in the module holds, other than by a branch or
     * an operand: first the @taken_count of those that its text holds.
     */
    const uintptr_t *pointed_at;
    size_t pointed_count, taken_count;
    bool has_distances; /* data holds a distance to text */
};

/* module_set_watch - a socket.
 * @comes: text is there and its symbols are known, and no CPU executes it yet. It may
 *      refuse, with a sentence in @why, of MODULE_WHY_MAX bytes
 * @leaves: what the module has registered itself goes: nothing calls it any more
 * @original: where the program is that is at @addr; @addr, unless that is in code that
 *      stands for other code. Context: any
 * @returns_to: a return address in [@start, @end) that was taken off some stack, or 0.
 *      Context: machine stopped
 * @goes: no thread is in the text; it can still be read, and is about to go
 * @gone: nothing knows its symbols any more
 *
 * Context: boot; the functions: thread.
 */
struct module_watch {
    int (*comes)(const struct module_facts *m, char *why);
    void (*leaves)(const struct module_facts *m);
    uintptr_t (*original)(uintptr_t addr);
    uintptr_t (*returns_to)(uintptr_t start, uintptr_t end);
    void (*goes)(const struct module_facts *m);
    void (*gone)(const struct module_facts *m);
};
void module_set_watch(const struct module_watch *watch);

/* module_init - Context: boot, behind vfs_init() and shell_init(). Return: 0; -ENOMEM, ... */
int module_init(void);

/* module_add_boot_file - a file of the boot loader appears below /boot.
 * @name: what the loader calls it: the last part of a path counts, words behind do not
 * @data: @len bytes, which stay for ever
 * module_load_listed - load /boot/NAME.o for each NAME of a list with commas, in its order.
 * The log tells of those that fail.
 *
 * Context: boot thread, behind module_init() and probes_init().
 */
void module_add_boot_file(const char *name, const void *data, size_t len);
void module_load_listed(const char *list);

/* module_load - load @file, @len bytes at a multiple of 8, as @name, and run its
 * constructors.
 * @why: MODULE_WHY_MAX bytes; on failure a sentence, or ""
 *
 * Context: thread.
 * Return:  0; -ENOEXEC no object that can be loaded; -EEXIST there is one of that name;
 *          -EINVAL not a name; -ENOMEM; -ENOSPC too many; what the constructors have told
 *          module_refuse().
 */
int module_load(const char *name, const void *file, size_t len, char *why);

/* module_load_path - the same of a file; its name is that of the file without ".o", and
 * with "_" for "-". Return: as module_load(), vfs_open().
 */
int module_load_path(const char *path, char *why);

/* module_unload - take it out again.
 * @why: as module_load()
 *
 * Context: thread.
 * Return:  0; -ENOENT no such module; -EBUSY another module uses it, a file or workload of it
 *          is in use, or a thread is inside; -EDEADLK it is about to be called by that module
 *          itself. After -EBUSY for what is inside it is MODULE_GOING, and another call goes
 *          on.
 */
int module_unload(const char *name, char *why);

/* module_refuse - a constructor says that the module is of no use: module_load() takes it out
 * again and returns @err, negative. The first one counts. Context: the constructor's thread.
 */
void module_refuse(int err);

/* name_keep - a copy of @name that stays for ever; the same one for equal names, so that what
 * is loaded again and again needs no more memory. Context: thread.
 * Return: NULL without memory.
 */
const char *name_keep(const char *name);

/* ---- asked from anywhere; these take no locks ---- */

/* module_text_contains - is all of [addr, addr + len) text of one module? Context: any. */
bool module_text_contains(uintptr_t addr, size_t len);
/* module_text_get - the text of the module in slot @i, 0..MODULES_MAX-1; from a panic, which
 * has stopped all other CPUs. Return: false: there is none.
 */
bool module_text_get(size_t i, uintptr_t *start, uintptr_t *end);
/* module_is_entry - does a function of a compiler begin at @addr? Context: any. */
bool module_is_entry(uintptr_t addr);
/* module_is_noretprobe - is @addr in the table? Context: any. */
bool module_is_noretprobe(uintptr_t addr);

/* module_print - /proc/modules. module_print_one - `module info`. Context: thread.
 * module_name_get - the name of module @i, or NULL; valid for ever. Context: thread.
 */
void module_print(struct seq *out);
int module_print_one(const char *name, struct seq *out);
const char *module_name_get(size_t i);

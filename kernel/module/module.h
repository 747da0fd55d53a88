/* module.h - loads objects into the running kernel, and takes them out again.
 *
 * A module is an object file such as EXTRA_OBJS links in. It may use each global function
 * and variable of the image, and of modules that were loaded before it. Its constructors
 * run when it is in place, its destructors before it goes.
 *
 * The kernel knows nothing of probes. The probe engine hears of text that comes and goes
 * by a struct module_watch.
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
    MODULE_GOING, /* it is being taken out, or something in use keeps it */
};

struct module_table {
    uintptr_t start;
    size_t count; /* records */
};

struct module_symbol {
    uintptr_t start;
    const char *name;   /* from name_keep() */
    const char *params; /* likewise: see elf_params(); NULL: not known */
    uint32_t size;
    uint32_t outer; /* index of the innermost symbol around it, or SYMBOL_NONE */
    char type;
    bool is_function; /* the file says that it is one; gdb's helpers read it */
};
#define SYMBOL_NONE UINT32_MAX

/* A place in the module where an address in text was written: in its own text, or inside
 * of a function elsewhere.
 */
struct module_pointer {
    uintptr_t place, to;
    enum module_pointer_kind {
        MODULE_POINTER_CODE,       /* absolute, in code */
        MODULE_POINTER_DATA,       /* absolute, or a fix-up */
        MODULE_POINTER_DIFFERENCE, /* relative, in data */
        MODULE_POINTER_KINDS,
        MODULE_POINTER_ELSEWHERE = MODULE_POINTER_KINDS, /* in other text */
    } kind;
};

/* What other parts of the kernel may know of a module, until module_watch.gone returns.
 */
struct module_facts {
    const char *name; /* never freed */
    uintptr_t text, text_end;
    uintptr_t memory, memory_end;        /* all of it, text included */
    struct module_table entries;         /* compiled functions: sorted addresses */
    struct module_table nokprobe;        /* addresses of functions */
    struct module_table nokprobe_ranges; /* struct nokprobe_range */
    struct module_table noretprobe;      /* as nokprobe */
    struct module_table markers;         /* struct marker_site */
    struct module_table marker_insns;    /* struct marker_insn */
    struct module_table static_keys;     /* struct static_key_insn */
    uintptr_t kprobes_text, kprobes_end; /* the section .kprobes.text: blacklisted */
    const struct module_symbol *symbols; /* sorted by address */
    size_t symbol_count;
    /* Without tables about the text, and without branches and relative operands that stay in
     * the text, which a decoder finds.
     */
    const struct module_pointer *pointers;
    size_t pointer_count;
};

/* module_watch - a socket: hears of text that comes and goes. Its functions:
 * @comes: the text is there and its symbols are known; no CPU executes it yet. @comes may
 *         refuse the module, with a sentence in @why, of MODULE_WHY_MAX bytes
 * @leaves: take out what the module has registered itself: on return nothing calls it any
 *          more
 * @original: return the address in the program that @addr stands for, if @addr is in code
 *            that stands for other code; else @addr. It runs in any context
 * @returns_to: return a return address in [@start, @end) that was taken off a stack, or
 *              0. It runs while the machine is stopped
 * @goes: no thread is in the text any more; it can still be read, and is about to go
 * @gone: the symbols of the module are not known any more
 *
 * Set at boot. The other functions run in `thread`.
 */
struct module_watch {
    int (*comes)(const struct module_facts *m, char *why);
    void (*leaves)(const struct module_facts *m);
    uintptr_t (*original)(uintptr_t addr);
    uintptr_t (*returns_to)(uintptr_t start, uintptr_t end);
    void (*goes)(const struct module_facts *m);
    void (*gone)(const struct module_facts *m);
};
extern const struct module_watch *module_watch;

/* module_init - let lookups ask modules, and add the command and the file of modules.
 * Context: boot, after vfs_init() and shell_init(). Return: 0; -ENOMEM, ...
 */
int module_init(void);

/* module_add_boot_file - show a file of the boot loader below /boot.
 * @name: as the loader calls it; only the last part of its path counts, and no words
 *        behind it
 * @data: @len bytes, which are never freed
 * module_load_listed - load /boot/NAME.o for each NAME in @list, in order. Commas
 * separate the names. Failures are logged. @list is changed.
 *
 * Context: thread, after module_init() and probes_init().
 */
void module_add_boot_file(const char *name, const void *data, size_t len);
void module_load_listed(char *list);

/* module_load - load the object @file as module @name, and run its constructors.
 * @file: @len bytes at a multiple of 8
 * @why: MODULE_WHY_MAX bytes; on failure a sentence, or ""
 *
 * Context: thread.
 * Return:  0; -ENOEXEC no object that can be loaded; -EEXIST there is a module of that
 *          name; -EINVAL not a name; -ENOMEM; -ENOSPC there are too many modules; the
 *          error that a constructor has given to module_refuse(); -EDEADLK as
 *          wait_check().
 */
int module_load(const char *name, const void *file, size_t len, char *why);

/* module_load_path - load the file @path. The module is called as the file, without ".o",
 * and with "_" in place of "-".
 * @again: the module of that name goes first, if there is one and the file is an object
 *         that could be loaded
 * Return: as module_load() and vfs_open(), and with @again as module_unload().
 */
int module_load_path(const char *path, bool again, char *why);

/* module_unload - take the module @name out.
 * @why: as module_load()
 *
 * Context: thread.
 * Return:  0; -ENOENT no such module; -EBUSY another module uses it, it has added a
 *          command, another thread loads or unloads it, a file or workload of it is in
 *          use, or a thread is inside; -EDEADLK the module itself is the caller, or as
 *          wait_check(). If a file, a workload or a thread keeps it, it is MODULE_GOING,
 *          and another call goes on. So it is if it has added a command while it went.
 */
int module_unload(const char *name, char *why);

/* module_refuse - for a constructor: say that the module is of no use. module_load() then
 * takes it out again, unless something keeps it as in module_unload(), and returns @err,
 * which is negative. Of several calls the first one counts. Context: thread. It is that of
 * the constructor.
 */
void module_refuse(int err);

/* name_keep - return a copy of @name that is never freed. Equal names have the same copy.
 * So a module that is loaded again and again needs no more memory for names.
 * Context: thread.
 * Return: NULL: no memory.
 */
const char *name_keep(const char *name);

/* ---- asked from anywhere; these take no locks ---- */

/* module_text_contains - is all of [addr, addr + len) text of a module? Context: any. */
bool module_text_contains(uintptr_t addr, size_t len);
/* module_text_get - get the text of the module in slot @i, 0..MODULES_MAX-1. Only for a
 * panic, which has stopped all other CPUs. Return: false: the slot is empty.
 */
bool module_text_get(size_t i, uintptr_t *start, uintptr_t *end);
/* module_is_entry - does a compiled function begin at @addr? Context: any. */
bool module_is_entry(uintptr_t addr);
/* module_is_noretprobe - is @addr in the noretprobe table of a module? Context: any. */
bool module_is_noretprobe(uintptr_t addr);

/* module_print - print the list of modules: /proc/modules. Context: thread.
 * module_print_one - print facts about one module: `module info`. Context: thread.
 * module_name_get - return the name of module @i, which is never freed; NULL: @i is too
 * large. Context: thread or held.
 */
void module_print(struct seq *out);
int module_print_one(const char *name, struct seq *out);
const char *module_name_get(size_t i);

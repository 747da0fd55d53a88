/* module.c - loads and unloads modules: in which order, and why.
 *
 * Loading. A step may refuse; then what was done before it is undone:
 *   1. The file is checked as a whole.                          check_file()
 *   2. It gets memory, values, bytes; text becomes executable.  module_build()
 *   3. Its symbols and fix-ups can be found. Before any CPU can be in the text, lookups
 *      must know what an address in the text means.
 *   4. The watch hears of the text: the blacklist and the targets come, and probes that
 *      have waited for it are armed. This is before 5, or the constructors would run
 *      without these probes.
 *   5. Its constructors run.
 *   6. Its workloads can be called, and it is live.
 *
 * Unloading. From 1 on the module is GOING. If something keeps it, the caller is told
 * what, and the next call goes on:
 *   1. New ways in are closed: workloads and files go. A workload or file in use keeps
 *      the module, and so does a command of the console, which cannot go.
 *   2. Its destructors run, once, and stop what the module has started.
 *   3. The watch takes out what the module has registered and has not unregistered, since
 *      handlers are ways in as well. This is after 2, where the module may do so itself.
 *   4. Quiescence. A thread that has found a way in before 1 to 3 has come out again, or
 *      is in the text, where 5 sees it.
 *   5. The check that no thread is in the text or will return there. After it no thread
 *      can come back: nothing executes the text any more.
 *      The module itself may have opened new ways in since 1: a destructor or a thread of
 *      it adds a command, a file or a probe. So 1 to 5 are done twice. The second time no
 *      code of the module runs but by such a way.
 *   6. The watch takes the probes of other parts of the kernel off the text. This is
 *      after 5: before it a thread could sleep on its way between the text and a copy of
 *      it.
 *   7. Symbols and fix-ups go. This is after 5 and 6, which need them: as long as a
 *      thread can be in the text, a fault there needs its fix-up, and the report of it a
 *      name.
 *   8. Quiescence. Lookups that had begun before 7 have ended.
 *   9. The memory is freed.
 */
#include "kernel/module/module.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"
#include "kernel/module/parts.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait_check.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (4u << 20)

struct module *modules[MODULES_MAX];
static unsigned module_changes;              /* of modules[], for debuggers */
static struct mutex lock = MUTEX_INIT(lock); /* held to change modules[] and the states */

/* refuse_module - refuse each module as long as no watch is set: the engine would not hear
 * of text that goes, and could have probes there.
 */
static int refuse_module(const struct module_facts *m UNUSED, char *why)
{
    snprintf(why, MODULE_WHY_MAX, "the probe engine does not follow modules");
    return -ENOSYS;
}

static void ignore_module(const struct module_facts *m UNUSED)
{
}

static const struct module_watch no_watch = { .comes = refuse_module,
                                              .gone = ignore_module };
const struct module_watch *module_watch = &no_watch; /* immutable after boot */

/* ---- the table of modules ---- */

/* module_named - find the module called @name. Locks: lock held. */
static struct module *module_named(const char *name)
{
    for (unsigned i = 0; i < MODULES_MAX; i++)
        if (modules[i] && strcmp(modules[i]->facts.name, name) == 0)
            return modules[i];
    return NULL;
}

static int free_slot(void)
{
    for (int i = 0; i < MODULES_MAX; i++)
        if (!modules[i])
            return i;
    return -ENOSPC;
}

static const struct module *user_of(const struct module *m)
{
    for (unsigned i = 0; i < MODULES_MAX; i++)
        if (modules[i] && modules[i]->imports & BIT(m->slot))
            return modules[i];
    return NULL;
}

static bool is_module_name(const char *name)
{
    size_t len = strlen(name);

    if (!len || len >= MODULE_NAME_MAX)
        return false;
    for (; *name; name++)
        if (!isalnum(*name) && *name != '_')
            return false;
    return true;
}

static void module_publish(struct module *m)
{
    m->number = module_changes;
    __atomic_store_n(&modules[m->slot], m, __ATOMIC_RELEASE);
    __atomic_add_fetch(&module_changes, 1, __ATOMIC_RELAXED);
}

static void module_withdraw(struct module *m)
{
    mutex_lock(&lock);
    symbols_gone(m);
    __atomic_store_n(&modules[m->slot], NULL, __ATOMIC_RELEASE); /* 7 */
    mutex_unlock(&lock);
    module_watch->gone(&m->facts);
    quiesce(); /* 8 */
    __atomic_add_fetch(&module_changes, 1, __ATOMIC_RELAXED);
    module_tear(m); /* 9 */
    kfree(m);
}

/* ---- constructors and destructors ---- */

static void call_functions(const struct module_table *t, bool backwards)
{
    void (*const *fn)(void) = (void (*const *)(void))t->start;

    for (size_t i = 0; i < t->count; i++)
        fn[backwards ? t->count - 1 - i : i]();
}

/* A constructor may load another module, so this thread may load several. The newest one is
 * the caller.
 */
void module_refuse(int err)
{
    struct module *m = NULL;
    int tid = thread_tid();

    mutex_lock(&lock);
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        struct module *one = modules[i];

        if (one && one->state == MODULE_COMING && one->owner == tid &&
            (!m || (int)(one->number - m->number) > 0))
            m = one;
    }
    if (m && !m->refused)
        m->refused = err;
    mutex_unlock(&lock);
}

/* ---- in ---- */

static struct module *module_new(const char *name, char *why, int *err)
{
    struct module *m = kzalloc(sizeof(*m));
    int slot = free_slot();

    *err = -ENOMEM;
    if (!m)
        return NULL;
    m->facts.name = name_keep(name);
    m->state = MODULE_COMING;
    m->owner = thread_tid();
    m->slot = (unsigned)slot;
    if (slot < 0) {
        snprintf(why, MODULE_WHY_MAX, "there are %d modules", MODULES_MAX);
        *err = slot;
    }
    if (m->facts.name && slot >= 0)
        return m;
    kfree(m);
    return NULL;
}

extern const uint64_t module_abi; /* the kernel's own headers: kernel/module/abi.py */

/* check_abi - check that the object was compiled with the kernel's headers: only then
 * numbers and layouts mean the same in both. An object that does not say so, such as one of
 * assembler code, is accepted.
 */
static int check_abi(const struct elf_object *o, char *why)
{
    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];
        const uint8_t *at = elf_content(o, s);

        if (elf_role_of(o, s) != ELF_ABI)
            continue;
        for (size_t k = 0; s->type != ELF_NOBITS && k < s->size; k += sizeof(module_abi))
            if (memcmp(at + k, &module_abi, sizeof(module_abi)) != 0) {
                snprintf(why, MODULE_WHY_MAX,
                         "it was compiled with other headers than this kernel "
                         "(.sonde_abi): compile it again");
                return -ENOEXEC;
            }
    }
    return 0;
}

static int check_file(struct elf_object *o, const void *file, size_t len, char *why)
{
    struct elf_reject reject = { 0 };
    int err = elf_check(o, file, len, &reject);

    if (err == -ENOEXEC)
        snprintf(why, MODULE_WHY_MAX, "%s: %s", reject.name ? reject.name : "the file",
                 elf_reason_text(reject.reason));
    return err ? err : check_abi(o, why);
}

/* load_locked - do steps 1 to 3. */
static struct module *load_locked(const char *name, const void *file, size_t len,
                                  char *why, int *err)
{
    struct elf_object o;
    struct module *m;

    if (module_named(name)) {
        snprintf(why, MODULE_WHY_MAX,
                 "it is loaded already; `module reload` takes it out");
        *err = -EEXIST;
        return NULL;
    }
    *err = check_file(&o, file, len, why); /* 1 */
    if (*err)
        return NULL;
    m = module_new(name, why, err);
    if (!m)
        return NULL;
    *err = module_build(m, &o, why); /* 2 */
    if (*err) {
        kfree(m);
        return NULL;
    }
    module_publish(m); /* 3 */
    return m;
}

/* module_end_work - end the work on @m, which has no owner any more. From now on @m is
 * LIVE; or GOING, and @why says what keeps it.
 */
static void module_end_work(struct module *m, enum module_state state, const char *why)
{
    mutex_lock(&lock);
    m->state = state;
    strlcpy(m->inside, why, sizeof(m->inside));
    m->owner = 0;
    mutex_unlock(&lock);
}

static int module_take_out(struct module *m, char *why);

/* module_start - do steps 4 to 6. */
static int module_start(struct module *m, char *why)
{
    int err = module_watch->comes(&m->facts, why); /* 4 */

    if (err) {
        module_withdraw(m);
        return err;
    }
    call_functions(&m->init, false); /* 5 */
    err = m->refused;
    if (!err)
        err = workload_add((const struct workload *)m->workloads.start,
                           m->workloads.count); /* 6 */
    if (!err) {
        module_end_work(m, MODULE_LIVE, "");
        return 0;
    }
    if (m->refused)
        snprintf(why, MODULE_WHY_MAX, "its constructors have refused");
    else if (err == -EEXIST)
        snprintf(why, MODULE_WHY_MAX, "the name of one of its workloads is taken");
    m->state = MODULE_GOING;
    if (module_take_out(m, why))
        module_end_work(m, MODULE_GOING, why);
    return err;
}

int module_load(const char *name, const void *file, size_t len, char *why)
{
    struct module *m;
    int err = wait_check(__func__);

    if (err)
        return err;
    why[0] = '\0';
    if (!is_module_name(name)) {
        snprintf(why, MODULE_WHY_MAX, "a name has letters, digits and _");
        return -EINVAL;
    }
    mutex_lock(&lock);
    m = load_locked(name, file, len, why, &err);
    mutex_unlock(&lock);
    return m ? module_start(m, why) : err;
}

/* ---- out ---- */

static const char has_command[] = "it has added a command, which stays for ever";

/* module_take_out - do all steps of unloading. @m is GOING, and the caller is its owner. */
static int module_take_out(struct module *m, char *why)
{
    const struct module_facts *f = &m->facts;
    const char *kept = NULL;
    int err;

    for (unsigned time = 0; time < 2; time++) {
        if (shell_has_command(f->memory, f->memory_end)) /* 1 */
            kept = has_command;
        else if (workload_remove(f->memory, f->memory_end) ||
                 vfs_remove_files(f->memory, f->memory_end))
            kept = "one of its workloads or files is in use: try again when it is not";
        if (kept) {
            strlcpy(why, kept, MODULE_WHY_MAX);
            return -EBUSY;
        }
        if (!m->destroyed)
            call_functions(&m->fini, true); /* 2 */
        m->destroyed = true;
        module_watch->leaves(f);   /* 3 */
        quiesce();                 /* 4 */
        err = inside_look(m, why); /* 5 */
        if (err)
            return err;
    }
    module_watch->goes(f); /* 6 */
    module_withdraw(m);    /* 7 to 9 */
    return 0;
}

/* claim_name - make this thread the owner of module @name, which it will take out. Return: 0;
 * or why it may not do so now.
 */
static int claim_name(const char *name, struct module **out, char *why)
{
    struct module *m = module_named(name);
    const struct module *user;

    *out = m;
    if (!m)
        return -ENOENT;
    if (m->owner) {
        snprintf(why, MODULE_WHY_MAX, "thread %d loads or unloads it", m->owner);
        return m->owner == thread_tid() ? -EDEADLK : -EBUSY;
    }
    if (shell_has_command(m->facts.memory, m->facts.memory_end)) {
        strlcpy(why, has_command, MODULE_WHY_MAX);
        return -EBUSY;
    }
    user = user_of(m);
    if (user) {
        snprintf(why, MODULE_WHY_MAX, "%s uses it: unload that first", user->facts.name);
        return -EBUSY;
    }
    m->state = MODULE_GOING;
    m->owner = thread_tid();
    return 0;
}

int module_unload(const char *name, char *why)
{
    struct module *m;
    int err = wait_check(__func__);

    if (err)
        return err;
    why[0] = '\0';
    mutex_lock(&lock);
    err = claim_name(name, &m, why);
    mutex_unlock(&lock);
    if (err)
        return err;
    err = module_take_out(m, why);
    if (err)
        module_end_work(m, MODULE_GOING, why);
    return err;
}

/* ---- from a file ---- */

/* name_of_path - make the name of a module from a path: my_reads from "/tmp/my-reads.o". */
static int name_of_path(const char *path, char name[MODULE_NAME_MAX])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t len = strlen(base);

    if (len > 2 && !strcmp(base + len - 2, ".o"))
        len -= 2;
    if (!len || len >= MODULE_NAME_MAX)
        return -EINVAL;
    memcpy(name, base, len);
    name[len] = '\0';
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    return 0;
}

static int read_all(const char *path, void **out, size_t *len)
{
    struct file file = { .flags = VFS_READ };
    int err = vfs_open(path, &file);

    if (err)
        return err;
    *len = file.text.len;
    *out = *len <= FILE_MAX ? kmalloc(*len) : NULL;
    if (*out)
        memcpy(*out, seq_str(&file.text), *len);
    vfs_close(&file);
    return *out ? 0 : -ENOMEM;
}

int module_load_path(const char *path, bool again, char *why)
{
    char name[MODULE_NAME_MAX];
    bool gone = false;
    struct elf_object o;
    void *file;
    size_t len;
    int err;

    why[0] = '\0';
    err = name_of_path(path, name);
    if (!err)
        err = read_all(path, &file, &len);
    if (err)
        return err;
    if (again) {
        err = check_file(&o, file, len, why);
        if (!err)
            err = module_unload(name, why);
        gone = !err;
    }
    if (!err || err == -ENOENT)
        err = module_load(name, file, len, why);
    if (err && gone)
        strlcat(why, *why ? "; the old module is gone" : "the old module is gone",
                MODULE_WHY_MAX);
    kfree(file);
    return err;
}

/* ---- what there is to know ---- */

static const char *state_name(enum module_state state)
{
    static const char *const names[] = {
        [MODULE_COMING] = "Loading", [MODULE_LIVE] = "Live", [MODULE_GOING] = "Unloading"
    };

    return names[state];
}

static void print_users(const struct module *m, struct seq *out)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MODULES_MAX; i++)
        count += modules[i] && modules[i]->imports & BIT(m->slot);
    seq_printf(out, "%u ", count);
    for (unsigned i = 0; i < MODULES_MAX; i++)
        if (modules[i] && modules[i]->imports & BIT(m->slot))
            seq_printf(out, "%s,", modules[i]->facts.name);
    seq_puts(out, count ? "" : "-");
}

void module_print(struct seq *out)
{
    mutex_lock(&lock);
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        const struct module *m = modules[i];

        if (!m)
            continue;
        seq_printf(out, "%s %zu ", m->facts.name, m->size);
        print_users(m, out);
        seq_printf(out, " %s 0x%016lx\n", state_name(m->state), m->facts.text);
    }
    mutex_unlock(&lock);
}

static void print_module_part(const struct module *m, const char *name,
                              enum window_part part, struct seq *out)
{
    uintptr_t start = m->window.start[part];

    seq_printf(out, "%-7s 0x%016lx %4zu KiB\n", name, start, m->window.pages[part] * 4);
}

static void print_imports(const struct module *m, struct seq *out)
{
    for (unsigned i = 0; i < MODULES_MAX; i++)
        if (modules[i] && m->imports & BIT(i))
            seq_printf(out, "uses    %s\n", modules[i]->facts.name);
}

int module_print_one(const char *name, struct seq *out)
{
    const struct module *m;

    mutex_lock(&lock);
    m = module_named(name);
    if (m) {
        seq_printf(out, "%s: %s, %zu bytes, %zu symbols\n", name, state_name(m->state),
                   m->size, m->facts.symbol_count);
        print_module_part(m, "text", WINDOW_TEXT, out);
        print_module_part(m, "rodata", WINDOW_RODATA, out);
        print_module_part(m, "data", WINDOW_DATA, out);
        print_imports(m, out);
        if (m->inside[0])
            seq_printf(out, "kept    %s\n", m->inside);
    }
    mutex_unlock(&lock);
    return m ? 0 : -ENOENT;
}

const char *module_name_get(size_t i)
{
    const char *name = NULL;

    mutex_lock(&lock);
    for (unsigned slot = 0; slot < MODULES_MAX; slot++)
        if (modules[slot] && !i--) {
            name = modules[slot]->facts.name;
            break;
        }
    mutex_unlock(&lock);
    return name;
}

INIT int module_init(void)
{
    symbols_start();
    return module_add_commands();
}

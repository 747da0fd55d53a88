/* commands.c - adds the console's command `module`, and the file /proc/modules. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/debug/ksyms.h"
#include "kernel/fs/vfs.h"
#include "kernel/module/parts.h"

#include <string.h>

static int module_tell(struct shell *sh, int err, const char *what, const char *why)
{
    if (!err)
        return 0;
    return shell_error(sh, err, "module: %s%s%s", what, *why ? ": " : "", why);
}

static int module_load_file(struct shell *sh, const char *path, bool again)
{
    char why[MODULE_WHY_MAX];
    int err = module_load_path(path, again, why);

    if (err == -ENOENT && !*why)
        return shell_error_name(sh, err, "module", path, shell_complete_paths, 1);
    return module_tell(sh, err, path, why);
}

static int module_load_run(struct shell *sh, const char *path)
{
    return module_load_file(sh, path, false);
}

static int module_reload(struct shell *sh, const char *path)
{
    return module_load_file(sh, path, true);
}

static void complete_loaded(struct shell_completion *c, int index UNUSED)
{
    const char *name;

    for (size_t i = 0; (name = module_name_get(i)); i++)
        shell_offer(c, name);
}

static int tell_named(struct shell *sh, int err, const char *name, const char *why)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    if (err == -ENOENT && !*why)
        return shell_refuse(sh, ENOENT, "module: no module is called %s%s", name,
                            shell_suggest(suggestion, name, complete_loaded, 1));
    return module_tell(sh, err, name, why);
}

static int module_del(struct shell *sh, const char *name)
{
    char why[MODULE_WHY_MAX];

    return tell_named(sh, module_unload(name, why), name, why);
}

static int module_list(struct shell *sh, const char *unused UNUSED)
{
    module_print(shell_out(sh));
    return 0;
}

static int module_info(struct shell *sh, const char *name)
{
    return tell_named(sh, module_print_one(name, shell_out(sh)), name, "");
}

/* module_symbols - print what /proc/kallsyms has of modules, with sizes: Linux's format has
 * none, and no reader of it expects one.
 */
static int module_symbols(struct shell *sh, const char *unused UNUSED)
{
    struct ksym sym;

    for (size_t i = 0; ksyms_get(i, &sym); i++)
        if (sym.module)
            seq_printf(shell_out(sh), "%016lx %6zx %c %s\t[%s]\n", sym.start, sym.size,
                       sym.type, sym.name, sym.module);
    return 0;
}

static const struct {
    const char *name;
    bool has_word;
    int (*run)(struct shell *sh, const char *word);
} verbs[] = {
    { "load", true, module_load_run }, { "reload", true, module_reload },
    { "del", true, module_del },       { "list", false, module_list },
    { "info", true, module_info },     { "symbols", false, module_symbols },
};

static int module_run(struct shell *sh, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++)
        if (!strcmp(argv[1], verbs[i].name) && argc == 2 + verbs[i].has_word)
            return verbs[i].run(sh, argv[2]);
    return shell_refuse(sh, EINVAL,
                        "usage: module load FILE | reload FILE | del NAME | "
                        "list | info NAME | symbols");
}

static void module_complete(struct shell_completion *c, int index)
{
    if (index == 1) {
        for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
            shell_offer(c, verbs[i].name);
        return;
    }
    if (strstr(shell_first(c), "load"))
        shell_complete_paths(c, index);
    complete_loaded(c, index);
}

static const struct shell_command command = {
    "module",
    "load FILE | reload FILE | del NAME | list | info NAME | symbols",
    "load objects into the running kernel, and take them out\n"
    "load    FILE.o becomes the module FILE; its constructors run\n"
    "reload  the module of that name goes first, if there is one\n"
    "del     its destructors run, and it goes when no thread is inside\n"
    "list    name, bytes, modules that use it, state, address\n"
    "info    more about one\n"
    "symbols address, size, type, name and module of each symbol",
    module_run,
    module_complete,
};

static int modules_show(struct seq *s, void *priv UNUSED)
{
    module_print(s);
    return 0;
}

INIT int module_add_commands(void)
{
    static const struct vfs_file file = { .name = "modules",
                                          .mode = 0444,
                                          .show = modules_show };
    int err = vfs_add_tree("/proc", &file, 1);

    return err ? err : shell_add_command(&command);
}

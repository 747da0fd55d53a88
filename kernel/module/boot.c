/* boot.c - shows modules that the boot loader has brought along as files below /boot, and
 * loads those that the boot argument `modules=` names.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/log.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"

#include <stdio.h>
#include <string.h>

struct boot_file {
    struct vfs_file file;
    const void *data;
    size_t len;
    char name[VFS_NAME_MAX + 1];
};

static int boot_file_show(struct seq *s, void *priv)
{
    const struct boot_file *f = priv;

    seq_write(s, f->data, f->len);
    return 0;
}

/* boot_file_name - make the name of the file. For the loader its name may be a path, with
 * words behind it.
 */
static INIT void boot_file_name(struct boot_file *f, const char *name)
{
    static unsigned nameless;
    size_t len = strcspn(name, " ");
    const char *base = name + len;

    while (base > name && base[-1] != '/')
        base--;
    len -= (size_t)(base - name);
    if (len)
        snprintf(f->name, sizeof(f->name), "%.*s", (int)len, base);
    else
        snprintf(f->name, sizeof(f->name), "module%u.o", nameless++);
}

INIT void module_add_boot_file(const char *name, const void *data, size_t len)
{
    struct boot_file *f = kzalloc(sizeof(*f));
    int err = -ENOMEM;

    if (f) {
        boot_file_name(f, name);
        f->data = data;
        f->len = len;
        f->file = (struct vfs_file){
            .name = f->name, .mode = 0444, .show = boot_file_show, .priv = f
        };
        err = vfs_add_tree("/boot", &f->file, 1);
    }
    if (!err)
        return;
    log_warn("/boot/%s: %s", f ? f->name : name, err_text(err));
    kfree(f);
}

static INIT void load_boot_file(const char *name)
{
    char path[VFS_NAME_MAX + 16], why[MODULE_WHY_MAX];
    int err;

    snprintf(path, sizeof(path), "/boot/%s.o", name);
    err = module_load_path(path, false, why);
    if (err)
        log_warn("modules=%s: %s%s%s", name, err_text(err), *why ? ": " : "", why);
}

INIT void module_load_listed(char *list)
{
    char *word;

    while ((word = strsep(&list, ",")) != NULL)
        if (*word)
            load_boot_file(word);
}

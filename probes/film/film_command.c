/* film_command.c - adds the console's `film`. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/fs/vfs.h"
#include "probes/console/place.h"
#include "probes/film/film.h"
#include "probes/port/port.h"

#include <stdlib.h>
#include <string.h>

#define PATH "/tmp/film"
#define MS 20

static int film_begin(struct shell *sh, const char *where, const char *wait)
{
    struct probe_reject why;
    uint64_t ms = MS;
    struct place place;
    uintptr_t addr;
    int err;

    if (place_parse(&place, where))
        return place_no_place(sh, where);
    if (place_find(&place, &addr, &why))
        return place_refused(sh, &place, &why);
    if (wait && (parse_u64(wait, 10, &ms) || ms > FILM_MS_MAX))
        return shell_refuse(sh, EINVAL, "film: %s: not 0 to %u milliseconds", wait,
                            FILM_MS_MAX);
    err = film_start(addr, (unsigned)ms);
    if (err == -EBUSY)
        return shell_refuse(sh, EBUSY,
                            "film: there is one under way; `film stop` ends it");
    if (err == -EINVAL)
        return shell_refuse(sh, EINVAL, "film: %s: no instruction", where);
    return err ? shell_error(sh, err, "film") : 0;
}

static int film_save(struct shell *sh, const struct seq *text)
{
    struct file file = { .flags = VFS_WRITE | VFS_TRUNC };
    uint64_t pos = 0;
    long written;
    int err = vfs_open(PATH, &file);

    if (err)
        return shell_error(sh, err, "film: %s", PATH);
    written = vfs_write(&file, seq_str(text), text->len, &pos);
    vfs_close(&file);
    return written < 0 ? shell_error(sh, (int)written, "film: %s", PATH) : 0;
}

static int film_end(struct shell *sh)
{
    struct seq text;
    unsigned lost;
    int err = film_stop();

    if (err)
        return shell_refuse(sh, -err, "film: there is none under way");
    seq_init(&text, NULL, NULL);
    lost = film_print(&text);
    err = text.err ? shell_error(sh, text.err, "film") : film_save(sh, &text);
    seq_free(&text);
    if (!err && lost)
        shell_printf(sh, "%u events had no room\n", lost);
    return err;
}

static int film_run(struct shell *sh, int argc, char **argv)
{
    if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "start"))
        return film_begin(sh, argv[2], argv[3]);
    if (argc == 2 && !strcmp(argv[1], "stop"))
        return film_end(sh);
    return shell_refuse(sh, EINVAL, "usage: film start PLACE [MS] | film stop");
}

static void film_complete(struct shell_completion *c, int index)
{
    if (index == 1) {
        shell_offer(c, "start");
        shell_offer(c, "stop");
    } else if (index == 2) {
        shell_complete_symbols(c, index);
    }
}

static const struct shell_command command = {
    .name = "film",
    .usage = "start PLACE [MS] | stop",
    .help = "note what happens to the text at PLACE, slowed down, in " PATH "\n"
            "\n"
            "  start PLACE [MS]  the patcher waits MS milliseconds, else 20, behind each "
            "store\n"
            "                    and each synchronisation; where PLACE is in "
            "film_fixture, the\n"
            "                    other CPUs run that function meanwhile\n"
            "  stop              write " PATH ": an object of JSON a line\n"
            "\n"
            "./sonde film play FILE shows it.",
    .run = film_run,
    .complete = film_complete,
};

INIT int film_add_command(void)
{
    return shell_add_command(&command);
}

/* boot_probes.c - the boot argument probes=PLACE,...: sets probes so early that functions
 * which only boot calls (INIT) are hit as well.
 */
#include "kernel/base/compiler.h"
#include "kernel/console/shell.h"
#include "kernel/debug/log.h"
#include "kernel/fs/seq.h"
#include "probes/port/port.h"

#include <stdio.h>
#include <string.h>

#define PLACE_MAX 512

/* --pending: a name that no symbol has now may be that of a module that is loaded later.
 */
static INIT void add_one(const char *place)
{
    char line[PLACE_MAX + 32];
    struct seq out;

    seq_init(&out, NULL, NULL);
    snprintf(line, sizeof(line), "probe add --pending %s", place);
    if (shell_execute(line, &out))
        log_warn("probes=%s: %.*s", place, (int)cut_blanks(seq_str(&out), out.len),
                 seq_str(&out)); /* log_warn() ends the line */
    seq_free(&out);
}

INIT void probes_add_listed(char *list)
{
    char *word;

    while ((word = strsep(&list, ",")) != NULL)
        if (*word)
            add_one(word);
}

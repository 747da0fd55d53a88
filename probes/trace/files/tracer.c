/* tracer.c - makes current_tracer and available_tracers. The only tracer is nop, which
 * does nothing by itself. Tools choose it before they use events.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"

#include <string.h>

static const char tracer[] = "nop";

static int name_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%s\n", tracer);
    return 0;
}

static long tracer_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word_len = len;
    const char *word = trace_word(text, &word_len);

    return str_is(tracer, word, word_len) ? (long)len : -EINVAL;
}

static const struct vfs_file files[] = {
    { .name = "current_tracer", .mode = 0644, .show = name_show, .write = tracer_write },
    { .name = "available_tracers",
      .mode = 0444,
      .show = name_show,
      .write = tracefs_read_only },
};

INIT int trace_add_tracer(void)
{
    return tracefs_add(NULL, files, ARRAY_LEN(files));
}

/* handler.c - your handlers, which find out which function moves how many bytes. */
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

/* The engine calls this handler before the first instruction of read_bytes()
 * and of write_bytes().
 */
static int before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static struct kprobe reads = { .symbol_name = "readers:read_bytes",
                               .pre_handler = before };
static struct kprobe writes = { .symbol_name = "readers:write_bytes",
                                .pre_handler = before };

__attribute__((constructor)) static void handler_init(void)
{
    int err = register_kprobe(&reads);

    if (!err)
        err = register_kprobe(&writes);
    if (err)
        module_refuse(err);
}

/* Prints what the handlers have seen so far. The console's command is `run handler`. */
static int handler_run(struct work *w)
{
    seq_printf(w->out, "all: 0 calls, 0 bytes, 0 missed\n");
    return 0;
}
WORKLOAD(handler, handler_run, "which function moves how many bytes");

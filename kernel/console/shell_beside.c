/* shell_beside.c - runs a command in a thread of its own, while the thread that wants it
 * looks on.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"

#define BESIDE_LOOK_NS UINT64_C(100000000)

struct beside {
    struct shell *sh;
    int argc;
    char **argv;
    void (*around)(void *arg, bool begins);
    void *arg;
    struct seq text; /* the output, until the command has ended */
    struct seq told; /* its messages, if the output does not go to the console */
    struct wait_queue end;
    bool ended;
};

static int beside_main(void *arg)
{
    struct beside *b = arg;
    struct seq *console = b->sh->out == b->sh->console ? &b->text : &b->told;
    int status =
        shell_run_into(b->sh, b->argc, b->argv, b->around, b->arg, &b->text, console);

    WRITE_ONCE(b->ended, true);
    wake_all(&b->end);
    return status;
}

int shell_run_beside(struct shell *sh, int argc, char **argv,
                     void (*around)(void *arg, bool begins), void (*watch)(void *arg),
                     void *arg)
{
    struct beside b = {
        .sh = sh, .argc = argc, .argv = argv, .around = around, .arg = arg
    };
    const struct clone_args args = { .fn = beside_main,
                                     .arg = &b,
                                     .name = thread_current()->name,
                                     .stack_len = SHELL_STACK_LEN };
    int tid, status;

    seq_init(&b.text, NULL, NULL);
    seq_init(&b.told, NULL, NULL);
    wait_queue_init(&b.end);
    tid = kernel_clone(&args);
    if (tid < 0)
        return shell_error(sh, tid, "sh: %s", argv[0]);
    while (wait_event_timeout(&b.end, READ_ONCE(b.ended), BESIDE_LOOK_NS))
        watch(arg);
    thread_join(tid, &status);
    seq_write(sh->out, seq_str(&b.text), b.text.len);
    seq_write(sh->console, seq_str(&b.told), b.told.len);
    seq_free(&b.text);
    seq_free(&b.told);
    return status;
}

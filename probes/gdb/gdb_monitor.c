/* gdb_monitor.c - runs the command of a qRcmd packet, at once or when the kernel runs.
 *
 * A command needs locks and memory. But all CPUs stand: a thread may hold a lock, and
 * will not give it back. So a command is run at once only if
 *
 *   1. it is one of the commands that only read, and wait for nothing
 *   2. no CPU has preemption off: then no CPU holds a spinlock, or is about to take one
 *   3. no thread holds a mutex
 *   4. the stack of the serving CPU has room for it
 *
 * Otherwise the command is kept, and the debugger gets a sentence that says so; but a
 * command that the console does not have is refused at once. The stub's thread runs the
 * command when the debugger lets the kernel run, and its output comes then.
 *
 * The answer is always OK: for an errno gdb adds a sentence of its own, about a fault of the
 * protocol. A command that is refused, or fails, has a sentence among its output.
 */
#include "probes/gdb/gdb_monitor.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/cpu/percpu.h"
#include "kernel/sync/mutex.h"
#include "probes/gdb/gdb_output.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/gdb/gdb_threads.h"
#include "probes/port/port_held.h"

#include <stdio.h>
#include <string.h>

#define KEPT_MAX 8
#define LINE_MAX 512
#define STACK_MIN (10 * KiB)
#define SENTENCE_MAX 256
#define WORD_LEN 48 /* of a command, its NUL included */

/* Line n is in kept[n % KEPT_MAX]. The kernel may stop while the stub's thread takes a
 * line out. So each side counts for itself.
 */
static char kept[KEPT_MAX][LINE_MAX];
static unsigned put_count;   /* [serving] atomic */
static unsigned taken_count; /* [the stub's thread] atomic */

/* Commands that only read: one of these entries, and arguments. */
static const char *const readers[] = { "ps",
                                       "cpus",
                                       "mem",
                                       "dmesg",
                                       "sym",
                                       "help",
                                       "probe list",
                                       "probe explain",
                                       "echo",
                                       "probe stat",
                                       "probe blacklist" };

/* ---- may it run at once? ---- */

static bool only_reads(const char *line)
{
    if (strpbrk(line, "|>"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        size_t len = strlen(readers[i]);

        if (!strncmp(line, readers[i], len) && (!line[len] || line[len] == ' '))
            return true;
    }
    return false;
}

static bool has_no_mutex(struct thread *t, void *arg)
{
    bool *is_held = arg;

    *is_held |= READ_ONCE(t->mutex_count) != 0;
    return !*is_held;
}

static size_t monitor_stack_left(void)
{
    const struct percpu *cpu = this_cpu();
    uintptr_t base = cpu->nmi_depth ? cpu->nmi_stack_base : cpu->stack_base;

    return (uintptr_t)__builtin_frame_address(0) - base;
}

/* why_not_now - return why the command cannot be run at once; NULL: it can. */
static const char *why_not_now(const char *line)
{
    bool is_held = false;

    if (!only_reads(line))
        return "it does more than read";
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        if (percpu_of(cpu)->preempt_count)
            return "a CPU stands where it may hold a lock";
    port_threads(has_no_mutex, &is_held);
    if (is_held)
        return "a thread that stands holds a mutex";
    if (monitor_stack_left() < STACK_MIN)
        return "the stack of the thread that stands is too full";
    return NULL;
}

/* is_unknown - does @line name a command that the console does not have? @word: that name,
 * as far as it fits. A line with quotes is left to the console.
 */
static bool is_unknown(const char *line, char word[WORD_LEN])
{
    if (strpbrk(line, "'\"\\"))
        return false;
    while (line) {
        size_t len;

        line += strspn(line, "| \t");
        len = strcspn(line, "| \t>");
        scnprintf(word, WORD_LEN, "%.*s", (int)len, line);
        if (len && !shell_table_find(word))
            return true;
        line = strchr(line, '|');
    }
    return false;
}

/* ---- running ---- */

static void say(const char *text)
{
    gdb_output_now(text, strlen(text));
}

static void note_failure(struct seq *text, int err)
{
    if (err)
        seq_printf(text, "monitor: it has failed: %d %s\n", -err, err_name(err));
}

static void run_now(const char *line)
{
    struct seq text;
    int err;

    seq_init(&text, NULL, NULL);
    err = shell_execute(line, &text);
    if (!text.len)
        note_failure(&text, err);
    gdb_output_now(seq_str(&text), text.len);
    seq_free(&text);
}

static void keep(const char *line, const char *why)
{
    char sentence[SENTENCE_MAX];

    if (put_count - READ_ONCE(taken_count) == KEPT_MAX) {
        say("monitor: eight commands wait for the kernel to run: continue first\n");
        return;
    }
    memcpy(kept[put_count % KEPT_MAX], line, strlen(line) + 1);
    __atomic_store_n(&put_count, put_count + 1, __ATOMIC_RELEASE);
    scnprintf(sentence, sizeof(sentence),
              "monitor: %s; the command runs when the kernel does\n", why);
    say(sentence);
}

static void refuse_unknown(const char *word)
{
    char suggestion[SHELL_SUGGESTION_MAX], sentence[SENTENCE_MAX];

    scnprintf(sentence, sizeof(sentence), "monitor: unknown command %s%s\n", word,
              shell_suggest(suggestion, word, shell_complete_commands, 0));
    say(sentence);
}

static void monitor_line(const char *line)
{
    char word[WORD_LEN];
    const char *why;

    if (is_unknown(line, word)) {
        refuse_unknown(word);
        return;
    }
    why = why_not_now(line);
    if (why)
        keep(line, why);
    else
        run_now(line);
}

void gdb_monitor_command(struct gdb_request *r)
{
    static char line[LINE_MAX];
    size_t len = gdb_take_hex(&r->at, line, LINE_MAX - 1);

    line[len] = '\0';
    if (*r->at || strlen(line) != len)
        say("monitor: a command has at most 511 characters\n");
    else
        monitor_line(line);
    gdb_ok(r);
}

/* ---- when the kernel runs ---- */

bool gdb_monitor_has_work(void)
{
    return READ_ONCE(put_count) != READ_ONCE(taken_count);
}

static void hand_on(struct seq *text)
{
    while (text->len) {
        size_t n = text->len < GDB_OUTPUT_MAX ? text->len : GDB_OUTPUT_MAX;

        gdb_output_put(text->text, n);
        seq_remove(text, n);
    }
}

static void run_kept(const char *line)
{
    struct seq text;

    seq_init(&text, hand_on, NULL);
    note_failure(&text, shell_execute(line, &text));
    hand_on(&text);
    seq_free(&text);
}

void gdb_monitor_work(void)
{
    while (gdb_monitor_has_work()) {
        run_kept(kept[taken_count % KEPT_MAX]);
        __atomic_store_n(&taken_count, taken_count + 1, __ATOMIC_RELEASE);
    }
}

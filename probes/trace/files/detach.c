/* detach.c - the command `trace-pages` of the console, which hands pages of the rings to
 * the host. The host reads them from the guest's memory: no byte of them goes through the
 * serial line.
 *
 * A request takes a batch of pages out of the rings. The answer gives the address of a
 * list, and the list gives the address of each page. The pages stay unchanged until the
 * next request. Its number says that the host has read them: then they become the spare
 * pages that replace the next pages of the rings.
 *
 * Numbers make a lost answer harmless: a host that asks again with the same number gets
 * the same batch. A host that begins (`open`) gets new numbers. So requests of an earlier
 * host are refused: it cannot confirm pages that the new host is reading. Pages that the
 * earlier host has not confirmed are the first batch of the new host.
 *
 *     trace-pages open          begins; the batch that is out gets a new number
 *     trace-pages on, off       recording and all histograms go on, or pause
 *     trace-pages commands      they go on while a typed command runs
 *     trace-pages hide          they leave out the thread that serves this line
 *     trace-pages N [all]       gives batch N, or it again; all: also pages that are not full
 *     trace-pages N close       the host has read batch N, and no batch is out
 *
 *     batch 1000002 pages 812 list 0x1f1000 now 56633137       is an answer
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/select.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "probes/trace/ring/format.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 1024 /* pages */
#define LIST_FRAMES (BATCH_MAX * sizeof(struct detached) / PAGE_SIZE)
#define QUESTIONS_MAX 64
#define OPEN_STEP 1000000 /* batches between the first numbers of two hosts */

/* An entry of the list that the host reads. */
struct detached {
    uint64_t place;  /* address | CPU */
    uint64_t missed; /* events lost right before; a full page cannot have the number */
};

/* probes/trace/host/dead.py reads the first three fields. Locks: the trace lock. */
static struct {
    uint64_t number;       /* of the last batch that the host has got */
    uint64_t count;        /* pages of that batch; 0: the host has read them */
    struct detached *list; /* BATCH_MAX entries; NULL: there is no host */
    uint64_t spare_count;
    struct ring_page *spares[BATCH_MAX];
} trace_batch;

/* ---- formats of events that may be deleted before the host asks ---- */

#define DESCRIBED_MAX 4096 /* events */

/* Formats of the events that were made since the host has begun, the newest first.
 * probes/trace/host/dead.py finds them by these names. Locks: the trace lock.
 */
struct described {
    struct described *next;
    uint64_t len; /* bytes of @text */
    char text[];  /* the group and a newline, then the file `format` */
};

static struct described *trace_described;
static unsigned described_count;

void trace_describe(const struct live_event *e)
{
    struct described *one = NULL;
    struct print p;
    struct seq s;

    if (!trace_batch.list || described_count == DESCRIBED_MAX)
        return;
    seq_init(&s, NULL, NULL);
    trace_printer(&p, &s);
    seq_printf(&s, "%s\n", e->group);
    format_event(&p, &e->event);
    if (!s.err)
        one = kmalloc(sizeof(*one) + s.len);
    if (one) {
        one->next = trace_described;
        one->len = s.len;
        memcpy(one->text, s.text, s.len);
        trace_described = one;
        described_count++;
    }
    seq_free(&s);
}

static void forget_described(void)
{
    while (trace_described) {
        struct described *next = trace_described->next;

        kfree(trace_described);
        trace_described = next;
    }
    described_count = 0;
}

/* ---- batches ---- */

static struct ring_page *spare_take(void)
{
    if (trace_batch.spare_count)
        return trace_batch.spares[--trace_batch.spare_count];
    return buffer_page_new();
}

static void spare_give(struct ring_page *page)
{
    if (trace_batch.spare_count < BATCH_MAX)
        trace_batch.spares[trace_batch.spare_count++] = page;
    else
        buffer_page_free(page);
}

/* detach_confirmed - make the pages of the batch spare pages, because the host has read
 * them.
 */
static void detach_confirmed(void)
{
    for (size_t i = 0; i < trace_batch.count; i++)
        spare_give(phys_to_virt(trace_batch.list[i].place & ~(PAGE_SIZE - 1)));
    trace_batch.count = 0;
}

/* detach_one - add the next page of @cpu to the batch.
 * Return: 1; 0: @cpu has no more pages, or the batch is full; -ENOMEM.
 */
static int detach_one(unsigned cpu, unsigned flags)
{
    struct ring_page *spare, *page;
    uint64_t missed;

    if (trace_batch.count == BATCH_MAX)
        return 0;
    spare = spare_take();
    if (!spare)
        return -ENOMEM;
    page = buffer_read_page(cpu, spare, flags, &missed);
    if (!page) {
        spare_give(spare);
        return 0;
    }
    trace_batch.list[trace_batch.count++] =
        (struct detached){ virt_to_phys(page) | cpu, missed };
    return 1;
}

/* detach_batch - fill the batch. It takes a page of each CPU in turn, so that no ring has
 * to wait until another ring is empty.
 * @all: take also the pages that are not full yet
 */
static int detach_batch(bool all)
{
    int found = 1;

    while (found > 0) {
        found = 0;
        for (unsigned i = 0; found >= 0 && i < cpu_count(); i++) {
            int one = detach_one(i, RING_WHOLE);

            found = one < 0 ? one : found + one;
        }
    }
    for (unsigned i = 0; all && !found && i < cpu_count(); i++)
        found = detach_one(i, 0) < 0 ? -ENOMEM : 0;
    return trace_batch.count ? 0 : found;
}

static int open_batches(void)
{
    uint64_t list;

    if (!trace_batch.list) {
        list = frame_alloc_run(LIST_FRAMES);
        if (list == FRAME_NONE)
            return -ENOMEM;
        trace_batch.list = phys_to_virt(list);
    }
    trace_batch.number = (trace_batch.number / OPEN_STEP + 1) * OPEN_STEP;
    return 0;
}

static void close_batches(void)
{
    detach_confirmed();
    while (trace_batch.spare_count)
        buffer_page_free(trace_batch.spares[--trace_batch.spare_count]);
    frame_free_run(virt_to_phys(trace_batch.list), LIST_FRAMES);
    trace_batch.list = NULL;
    forget_described();
}

/* batch - carry out a request for batch @number. The next number confirms the present
 * batch and makes a new one; the present number changes nothing.
 * Return: 0; -EINVAL; -ENOMEM.
 */
static int batch(uint64_t number, const char *how)
{
    bool all = !strcmp(how, "all");

    if (!trace_batch.list || number < trace_batch.number ||
        number > trace_batch.number + 1)
        return -EINVAL;
    if (!strcmp(how, "close") && number == trace_batch.number) {
        close_batches();
        return 0;
    }
    if (!all && *how)
        return -EINVAL;
    if (number == trace_batch.number)
        return 0;
    detach_confirmed();
    trace_batch.number = number;
    return detach_batch(all);
}

/* record_switch - let recording and all histograms go on, or pause. It opens no file,
 * because the functions of files may be traced.
 */
static void record_switch(bool on)
{
    for (struct live_event *e = live_event_next(NULL); e; e = live_event_next(e))
        for (unsigned i = 0; e->attached && i < e->attached->count; i++)
            if (e->attached->trigger[i]->hist)
                live_hist_pause(e->attached->trigger[i]->hist, !on);
    buffer_switch(on);
    snapshot_settle(); /* the host reads the snapshot from memory */
}

/* The windows of the questions of `commands`. Locks: the trace lock; [a] for a command. */
static uint8_t *windows[QUESTIONS_MAX + 1];

/* command_window - open the windows for a command, or close them. No function is called
 * while they are open: it would be counted.
 */
static void command_window(bool begins)
{
    if (begins)
        buffer_switch(true);
    for (unsigned i = 0; windows[i]; i++)
        WRITE_ONCE(*windows[i], !begins);
    if (!begins)
        buffer_switch(false);
}

/* record_commands - record, and count for questions, only while commands run that are typed
 * from now on at a console for users.
 */
static void record_commands(void)
{
    unsigned n = 0;

    for (struct live_event *e = live_event_next(NULL); e; e = live_event_next(e))
        for (unsigned i = 0; e->attached && i < e->attached->count; i++) {
            struct hist *hist = e->attached->trigger[i]->hist;

            if (hist && hist_begins_paused(hist) && n < QUESTIONS_MAX)
                windows[n++] = hist_pause_byte(hist);
        }
    windows[n] = NULL;
    shell_set_window(command_window);
}

static int command(int argc, char **argv)
{
    uint64_t number;
    int err;

    if (argc == 2 && !strcmp(argv[1], "open"))
        return open_batches();
    if (argc == 2 && !strcmp(argv[1], "hide")) {
        select_hide_thread();
        return 0;
    }
    if (argc == 2 && !strcmp(argv[1], "commands")) {
        record_commands();
        return 0;
    }
    if (argc == 2 && (!strcmp(argv[1], "on") || !strcmp(argv[1], "off"))) {
        shell_set_window(NULL);
        record_switch(!strcmp(argv[1], "on"));
        return 0;
    }
    if (argc < 2 || argc > 3)
        return -EINVAL;
    err = parse_u64(argv[1], 10, &number);
    return err ? err : batch(number, argc == 3 ? argv[2] : "");
}

static int pages_run(struct shell *sh, int argc, char **argv)
{
    uint64_t now, number, count, list;
    int err;

    trace_lock();
    now =
        buffer_now(); /* events before this time are in this batch or in an earlier one */
    err = command(argc, argv);
    number = trace_batch.number;
    count = trace_batch.count;
    list = trace_batch.list ? virt_to_phys(trace_batch.list) : 0;
    trace_unlock();
    if (err)
        return shell_error(sh, err, "trace-pages: batch %lu is out", number);
    if (argc == 2 && !strcmp(argv[1], "hide"))
        shell_printf(sh, "thread %d\n", thread_current()->tid);
    else if (list)
        shell_printf(sh, "batch %lu pages %lu list 0x%lx now %lu\n", number, count, list,
                     now);
    return 0;
}

static const struct shell_command trace_pages = {
    "trace-pages", "open | on | off | commands | hide | BATCH [all | close]",
    "pages of the tracer for ./sonde trace\n"
    "open   begin; prints the number of the batch that is out, maybe an empty one\n"
    "on, off  recording and all histograms go on, or pause\n"
    "commands  they go on while a command of a console for users runs, and pause else\n"
    "hide   events of the thread that runs this command are not recorded\n"
    "BATCH  one more than that number: what is out was read, and the next pages come;\n"
    "       the same number: the same pages once more\n"
    "all    also pages that are not full yet\n"
    "close  end: what is out, BATCH, was read\n"
    "The list at the address that is printed has 16 bytes for each page: its address, "
    "with\n"
    "its CPU in the low 12 bits, and how many events were lost before it.",
    pages_run, NULL
};

INIT int trace_add_pages(void)
{
    return shell_add_developer_command(&trace_pages);
}

/* handler.c - counts in a table how many bytes each function moves. The table has no
 * lock, because an NMI may come in the middle of a handler.
 */
#include "kernel/debug/ksyms.h"
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

#define CALLERS_MAX 64

static struct caller {
    uintptr_t start; /* address of the function; 0: this entry is free */
    unsigned long calls, bytes;
} callers[CALLERS_MAX];

static void add(unsigned long *number, unsigned long more)
{
    __atomic_add_fetch(number, more, __ATOMIC_RELAXED);
}

/* Return the entry of a function, or the first free entry; NULL: the table is full. */
static struct caller *caller_of(uintptr_t start)
{
    for (size_t i = 0; i < CALLERS_MAX; i++) {
        uintptr_t there = 0;

        if (__atomic_compare_exchange_n(&callers[i].start, &there, start, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            there == start)
            return &callers[i];
    }
    return NULL;
}

/* At the first instruction of a function, the return address is at the top of the stack,
 * and the third argument is in rdx.
 */
static int before(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    uintptr_t from = *(const uintptr_t *)regs->sp;
    struct caller *caller;
    struct ksym sym;

    if (!ksyms_at(from, &sym))
        from = sym.start;
    caller = caller_of(from);
    if (caller) {
        add(&caller->calls, 1);
        add(&caller->bytes, regs->dx);
    }
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

__attribute__((destructor)) static void handler_exit(void)
{
    unregister_kprobe(&writes);
    unregister_kprobe(&reads);
}

static int handler_run(struct work *w)
{
    unsigned long calls = 0, bytes = 0;

    for (size_t i = 0; i < CALLERS_MAX && callers[i].start; i++) {
        struct ksym sym = { .name = "unknown" };

        ksyms_at(callers[i].start, &sym);
        seq_printf(w->out, "%s: %lu calls, %lu bytes\n", sym.name, callers[i].calls,
                   callers[i].bytes);
        calls += callers[i].calls;
        bytes += callers[i].bytes;
    }
    seq_printf(w->out, "all: %lu calls, %lu bytes, %lu missed\n", calls, bytes,
               reads.nmissed + writes.nmissed);
    return 0;
}
WORKLOAD(handler, handler_run, "which function moves how many bytes");

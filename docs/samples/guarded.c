/* guarded.c - a sample with a blacklist: the module marks code that may never
 * carry a probe.
 *
 *     ./sonde module docs/samples/guarded.c 'probe add guarded:count' 'run guarded'
 *
 * count() may be probed. add() and the function in .kprobes.text may not be probed. A
 * marked function may call only marked functions: if add() had no mark, the kernel would
 * refuse the module. In swap() only a part is marked, with a reason.
 */
#include "kernel/base/nokprobe.h"
#include "kernel/work/work.h"

static unsigned long sum;

static NOINLINE void add(unsigned long n)
{
    __atomic_add_fetch(&sum, n, __ATOMIC_RELAXED);
}
NOKPROBE(add);

/* The older way to mark a function: its code is in a certain section. */
static NOINLINE SECTION(".kprobes.text") void add_twice(unsigned long n)
{
    add(n);
    add(n);
}

/* Assembler instructions can be marked, too. The other instructions of swap()
 * may be probed.
 */
static NOINLINE void swap(unsigned long *a, unsigned long *b)
{
    __asm__ volatile(NOKPROBE_ASM("xor %0, %1\n\t"
                                  "xor %1, %0\n\t"
                                  "xor %0, %1",
                                  "a and b are mixed")
                     : "+r"(*a), "+r"(*b));
}

static NOINLINE void count(unsigned long n)
{
    unsigned long zero = 0;

    swap(&n, &zero);
    add_twice(zero);
}

static int guarded_run(struct work *w)
{
    for (unsigned long i = 1; i <= 10; i++)
        count(i);
    seq_printf(w->out, "sum %lu\n", sum);
    return 0;
}
WORKLOAD(guarded, guarded_run, "calls what is marked, and what is not");

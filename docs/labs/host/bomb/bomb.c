/* bomb.c - lab 1: a module with six keys, which a student can find only by probes.
 *
 * grader.py chooses names and keys by a seed, and passes them by -D: NAME_... are names
 * of functions, SHUT_... are numbers multiplied by SHUT. So no constant in the object
 * is a key.
 */
#include "kernel/work/work.h"

#include <stdbool.h>

static volatile uint32_t open_with = OPENS; /* SHUT * OPENS is 1, modulo 2^32 */

static uint32_t opened(uint32_t shut)
{
    return shut * open_with;
}

/* ---- count ---- */

static NOINLINE uint64_t NAME_COUNT(uint64_t x)
{
    return work_hash(x ^ FOLD_BY);
}

/* ---- argument ---- */

static NOINLINE uint64_t NAME_ARGUMENT(uint64_t which, uint64_t x, uint64_t third)
{
    return work_hash(which ^ x) + third;
}

/* ---- register ---- */

/* The product in rbx is the key, until bswap swaps its bytes. */
static NOINLINE uint64_t NAME_REGISTER(uint64_t x)
{
    uint64_t value = SHUT_REGISTER, by = open_with;

    __asm__ volatile("imul %%ecx, %%ebx\n\t"
                     "bswap %%rbx\n\t"
                     "imul %1, %%rbx"
                     : "+b"(value)
                     : "r"(x | 1), "c"(by));
    return value;
}

/* ---- return ---- */

static NOINLINE uint64_t NAME_RETURN(uint64_t which)
{
    return which == WHICH_RETURN ? opened(SHUT_RETURN) : work_hash(which) >> 40;
}

/* ---- caller ---- */

static NOINLINE uint64_t NAME_CALLER(uint64_t which)
{
    return work_hash(which);
}

/* Each function has another constant: the compiler would merge functions that are equal.
 * None is 0: its call would be a jump, and nothing would show who called.
 */
#define CALLS(name, shut)                                                                \
    static NOINLINE uint64_t name(uint64_t which)                                        \
    {                                                                                    \
        return NAME_CALLER(which) + (shut) + 1;                                          \
    }
CALLERS(CALLS)

/* ---- inlined ---- */

static ALWAYS_INLINE uint32_t fold(uint32_t sum, unsigned count)
{
    while (count--)
        __asm__ volatile("imul %1, %0, %0" : "+r"(sum) : "i"(FOLD_BY));
    return sum;
}

static NOINLINE uint64_t NAME_INLINED(uint64_t x)
{
    return fold((uint32_t)x, 1 + x % 7);
}

static NOINLINE uint64_t NAME_ALSO(uint64_t x)
{
    return fold((uint32_t)x, 1 + x % 5);
}

/* Call NAME_INLINED() until fold() has multiplied @key times in it. Return this number.
 */
static uint64_t inlined_until(uint64_t random, uint32_t key, uint64_t *sum)
{
    uint64_t count = 0;

    while (count < key) {
        uint64_t x = work_next(&random);

        if (1 + x % 7 > key - count)
            x -= x % 7;
        *sum += NAME_INLINED(x);
        count += 1 + x % 7;
        if (x & 8)
            *sum += NAME_ALSO(x >> 8);
    }
    return count;
}

static uint64_t all_phases(uint64_t random)
{
    uint32_t count = opened(SHUT_COUNT);
    uint64_t sum = 0;

    while (count--)
        sum += NAME_COUNT(work_next(&random));
    for (unsigned i = 0; i < 40; i++)
        sum += NAME_ARGUMENT(i, work_next(&random),
                             i == WHICH_ARGUMENT ? opened(SHUT_ARGUMENT)
                                                 : work_next(&random) >> 40);
    sum += NAME_REGISTER(work_next(&random));
    for (unsigned i = 0; i < 40; i++)
        sum += NAME_RETURN(i);
#define CALL(name, shut) sum += name(opened(shut));
    CALLERS(CALL)
    inlined_until(random, opened(SHUT_INLINED), &sum);
    return sum;
}

#define TEXT(x) #x
#define STRING(x) TEXT(x)

static int bomb_run(struct work *w)
{
    seq_printf(w->out, "count     how often is %s called?\n", STRING(NAME_COUNT));
    seq_printf(w->out,
               "argument  what is the third argument of %s when the first is %d?\n",
               STRING(NAME_ARGUMENT), WHICH_ARGUMENT);
    seq_printf(w->out,
               "register  what is in rbx when %s is about to execute its bswap?\n",
               STRING(NAME_REGISTER));
    seq_printf(w->out, "return    what does %s return when its argument is %d?\n",
               STRING(NAME_RETURN), WHICH_RETURN);
    seq_printf(w->out, "caller    which function calls %s with %d?\n",
               STRING(NAME_CALLER), WHICH_CALLER);
    seq_printf(w->out,
               "inlined   how often does %s multiply by %#x? its loop is inlined\n",
               STRING(NAME_INLINED), FOLD_BY);
    work_mix(w, all_phases(1));
    return 0;
}
WORKLOAD(bomb, bomb_run, "lab 1");

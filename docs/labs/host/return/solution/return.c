/* return.c - return probes: a stack of records for each thread, in the order of the stack. */
#include "return.h"

struct record {
    uint64_t *slot;
    uint64_t address, argument;
};

static __thread struct record records[RETURN_MAX];
static __thread unsigned count;

/* trampoline.asm */
void return_trampoline(void);
uint64_t return_leave(uint64_t *slot, uint64_t value);

/* Forget the calls that were left without a return: their slots are below @slot. */
static void forget_below(const uint64_t *slot)
{
    while (count && records[count - 1].slot < slot)
        count--;
}

void return_enter(uint64_t *slot, uint64_t argument)
{
    uint64_t ours = (uint64_t)return_trampoline;

    forget_below(slot);
    /* At the same slot: after a tail call that record waits still, else it was left. */
    while (*slot != ours && count && records[count - 1].slot == slot)
        count--;
    if (count == RETURN_MAX)
        return;
    records[count++] = (struct record){ slot, *slot, argument };
    *slot = ours;
}

/* Handle the return of a function. Its return address was at @slot: return this address. The
 * record is copied, because lab_returned() may call followed functions, which take its entry.
 */
uint64_t return_leave(uint64_t *slot, uint64_t value)
{
    struct record record;

    forget_below(slot);
    record = records[--count];
    lab_returned(record.argument, value);
    return record.address;
}

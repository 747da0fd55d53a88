/* return_targets.h - functions that carry return probes, and handlers that count, for
 * tests of returns. Functions that are not described here are described in
 * return_targets.asm.
 */
#pragma once

#include "probes/kprobe.h"

#include <stdint.h>

struct return_env {
    uint64_t words[8];
};

/* Like setjmp and longjmp; neither of the two may be probed. */
uint64_t return_setjmp(struct return_env *env) __attribute__((returns_twice));
_Noreturn void return_longjmp(struct return_env *env, uint64_t value);

void return_registers(uint64_t out[17], uint64_t flags);
void return_scramble(uint64_t flags);
uint64_t return_recurse(uint64_t n);
uint64_t return_outer(uint64_t x);
uint64_t return_inner(uint64_t x);
uint64_t return_circle(uint64_t n);
uint64_t return_circle_back(uint64_t n);
uint64_t return_elsewhere(uint64_t (*fn)(uint64_t x), uint64_t x, void *top);
void return_echo_call(uint64_t out[16], uint64_t flags);
void return_echo(void);
uint64_t return_steps_call(uint64_t x);
uint64_t return_steps(uint64_t x);
uint64_t return_stepped(uint64_t (*fn)(uint64_t x), uint64_t x);

/* return_target - return 3 * @a + @b.
 * return_leave - leave by return_longjmp(@env) unless @x is 0.
 * return_come_back - call return_leave(), which jumps back, and then return_target().
 * Both calls have the same place for the return address on the stack. Return: 5.
 */
long return_target(long a, long b);
long return_leave(struct return_env *env, long x);
long return_come_back(void);

/* What the handlers below have counted, on all CPUs; return_counts_start() sets it to 0.
 */
struct return_counts {
    uint64_t entered, returned;
    uint64_t wrong; /* returns whose image had another ip than ret_addr of the instance */
};
extern struct return_counts return_counts;

void return_counts_start(void);
int return_count_entry(struct kretprobe_instance *ri, struct pt_regs *regs);
int return_count(struct kretprobe_instance *ri, struct pt_regs *regs);

/* return_both - return 5 * @x + 3.
 * return_call_both - return return_both(@x) + 1.
 * return_leaf - return @x + 1. Only the NMIs of return_storm() call it.
 */
long return_both(long x);
long return_call_both(long x);
uint64_t return_leaf(uint64_t x);

/* return_load_start - let a thread on the last CPU call return_call_both() all the time.
 * return_load_stop - end it. Return: how many calls returned something else.
 * return_storm - do both, and meanwhile send @count NMIs to that CPU. Each of them calls
 * @look with what it has interrupted, return_leaf() and return_both().
 */
void return_load_start(void);
uint64_t return_load_stop(void);
uint64_t return_storm(uint64_t count, void (*look)(const struct pt_regs *regs));

/* return_probe - register @rp at @fn. If @rp has no handler, it gets return_count().
 * Return: as register_kretprobe().
 */
int return_probe(struct kretprobe *rp, const void *fn);

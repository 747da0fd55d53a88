/* return_targets.h - return_targets.asm, and counting handlers, for tests of returns. */
#pragma once

#include "probes/kprobe.h"

#include <stdint.h>

struct return_env {
    uint64_t words[8];
};

/* Like setjmp and longjmp; neither may be probed itself. */
uint64_t return_setjmp(struct return_env *env) __attribute__((returns_twice));
_Noreturn void return_longjmp(struct return_env *env, uint64_t value);

void return_registers(uint64_t out[17], uint64_t flags);
void return_scramble(uint64_t flags);
uint64_t return_recurse(uint64_t n);
uint64_t return_outer(uint64_t x);
uint64_t return_inner(uint64_t x);
uint64_t return_circle(uint64_t n);
uint64_t return_circle_back(uint64_t n);
uint64_t return_exits(uint64_t n);
uint64_t return_elsewhere(uint64_t (*fn)(uint64_t x), uint64_t x, void *top);
void return_echo_call(uint64_t out[16], uint64_t flags);
void return_echo(void);
uint64_t return_steps_call(uint64_t x);
uint64_t return_steps(uint64_t x);
uint64_t return_stepped(uint64_t (*fn)(uint64_t x), uint64_t x);

/* return_target - 3 * @a + @b.
 * return_leave - left by a jump unless @x is 0.
 * return_come_back - call the latter, and then the former, at the same place: 5.
 */
long return_target(long a, long b);
long return_leave(struct return_env *env, long x);
long return_come_back(void);

/* What the handlers below have seen, on any CPU; return_counts_start() makes it none. */
struct return_counts {
    uint64_t entered, returned;
    uint64_t wrong; /* returns whose image had another ip than the instance */
};
extern struct return_counts return_counts;

void return_counts_start(void);
int return_count_entry(struct kretprobe_instance *ri, struct pt_regs *regs);
int return_count(struct kretprobe_instance *ri, struct pt_regs *regs);

/* return_probe - register @rp at @fn, with return_count() unless it has a handler.
 * Return: as register_kretprobe().
 */
int return_probe(struct kretprobe *rp, const void *fn);

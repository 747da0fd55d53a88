/* jump.h - stage 6 without a trap: what the code of a detour calls.
 *
 * The assembly has built the register image and has switched preemption off, once; interrupts
 * are as the program has them.
 */
#pragma once

#include "probes/core/life.h"

/* kprobe_jump_handler - pre-handlers. Return: true: leave by the image.
 * kprobe_jump_rest - those of @p and behind it, in the latest hit. Return: as above.
 * kprobe_image_handler - and the instruction, to the image.
 * kprobe_jump_leave - only that, or nothing where a handler has set ip.
 * kprobe_specialized_leave - the same for the site that has @ip in one of its cells.
 * kprobe_post_handler - post-handlers, with ip behind the instruction. Return: as above.
 * @cpu: NULL while the CPU is not ready for probes
 */
bool kprobe_jump_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu);
bool kprobe_jump_rest(struct pt_regs *regs, struct kprobe *p, struct probe_cpu *cpu);
void kprobe_image_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu);
void kprobe_jump_leave(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu,
                       bool stopped);
void kprobe_specialized_leave(struct pt_regs *regs, uintptr_t ip, struct probe_cpu *cpu,
                              bool stopped);
bool kprobe_post_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu);

/* jump.h - stage 6 for hits by a jump: the functions that the code of a detour calls.
 *
 * That code is written in assembly. It has built the register image, and has switched
 * preemption off, once. Interrupts are as the program has them.
 */
#pragma once

#include "probes/core/life.h"

/* kprobe_jump_handler - run the pre-handlers of @site. Return: true: the program goes on
 * as the image says. False: it goes on in the cell.
 * kprobe_jump_rest - run the pre-handlers of @p and of the probes behind it in the list,
 * as a part of the latest hit. Return: as above.
 * kprobe_image_handler - run the pre-handlers, and apply the instruction to the image.
 * kprobe_jump_leave - apply the instruction to the image. If @stopped, a handler has set
 * ip, and the instruction is not applied.
 * kprobe_specialized_leave - the same for the site that has @ip in one of its cells.
 * kprobe_post_handler - set ip behind the instruction, and run the post-handlers. Return:
 * as above.
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

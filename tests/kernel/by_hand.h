/* by_hand.h - lets a test write jumps to detours itself, without the optimizer. */
#pragma once

#include "probes/kprobe.h"

/* by_hand_begin - switch the optimizer off until the end of the running test. Call it
 * before probes are registered: a few milliseconds after that the optimizer would change
 * the same bytes.
 * by_hand_jump - replace the int3 of @p by a jump to its detour. @p is armed
 * at an instruction of five bytes or more. If this is a direct call, then the
 * jump is a call, too.
 * Return: false when there is no detour.
 * by_hand_int3 - replace the jump of @p by the int3.
 * with_jump - call by_hand_begin(), register @p at the entry of @fn, and call
 * by_hand_jump(). @fn begins with a NOP of five bytes. Return: false, after a
 * failure was reported.
 * without_jump - undo with_jump(), but for by_hand_begin().
 * Context: thread. Nothing else changes @p meanwhile.
 */
void by_hand_begin(void);
bool by_hand_jump(struct kprobe *p);
void by_hand_int3(struct kprobe *p);
bool with_jump(struct kprobe *p, long (*fn)(long));
void without_jump(struct kprobe *p);

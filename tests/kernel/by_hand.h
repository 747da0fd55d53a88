/* by_hand.h - jumps to detours that the test alone makes, without the optimizer. */
#pragma once

#include "probes/kprobe.h"

/* by_hand_begin - until the end of this test the optimizer makes no jumps. It is called
 * before probes are registered: some milliseconds later the optimizer would change the same
 * bytes.
 * by_hand_jump - let the int3 of @p, armed at an instruction of five bytes or more, become
 * a jump to its detour; a direct call stays one. Return: false when there is no detour.
 * by_hand_int3 - and back.
 * with_jump - begin, and register @p at the entry of @fn, a NOP of five bytes, as a jump.
 * Return: false, and that is a failure of the test.
 * without_jump - and take it out again.
 * Context: thread. Nothing else changes @p meanwhile.
 */
void by_hand_begin(void);
bool by_hand_jump(struct kprobe *p);
void by_hand_int3(struct kprobe *p);
bool with_jump(struct kprobe *p, long (*fn)(long));
void without_jump(struct kprobe *p);

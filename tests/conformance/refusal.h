/* refusal.h - refused.tsv as a table, and a place where any bytes can be offered to the
 * engine without being executed.
 */
#pragma once

#include "probes/insn/insn.h"
#include "probes/kprobe.h"

/* Bytes of refused.asm. */
struct sample {
    const char *text;
    const uint8_t *bytes;
    size_t len;
};

extern const struct sample samples_refused[], samples_refused_end[];
extern const struct sample samples_copied[], samples_copied_end[];

/* refusal_offer - write the bytes of @sample to refusal_site and register @p there.
 * @insn: receives the first instruction, its len 0 where it does not decode
 * Return: as register_kprobe_why().
 */
int refusal_offer(const struct sample *sample, struct kprobe *p, struct insn *insn,
                  struct probe_reject *why);

/* refusal_withdraw - refusal_site is as it was built; no probe may be left there. */
void refusal_withdraw(void);

/* refusal_meet - is there a row for @rule refusing an instruction of @kind, or any? It is
 * met from now on.
 * refusal_is_met - was it, for exactly this kind?
 */
bool refusal_meet(enum insn_kind kind, enum probe_reason rule);
bool refusal_is_met(enum insn_kind kind, enum probe_reason rule);

/* refusal_row - row @i in words, and whether it was met. Return: false behind the last. */
bool refusal_row(size_t i, char *text, size_t size, bool *met);

/* refusal.h - refused.tsv as a table, and refusal_site, a place in text that is not
 * executed, where a test can register a probe on any bytes.
 */
#pragma once

#include "probes/insn/insn.h"
#include "probes/kprobe.h"

/* A row of refused.asm: source line, and bytes. */
struct sample {
    const char *text;
    const uint8_t *bytes;
    size_t len;
};

extern const struct sample samples_refused[], samples_refused_end[];
extern const struct sample samples_copied[], samples_copied_end[];

/* refusal_offer - write the bytes of @sample to refusal_site and register @p there.
 * @insn: receives the first instruction; its len is 0 if it cannot be decoded
 * Return: as register_kprobe_why().
 */
int refusal_offer(const struct sample *sample, struct kprobe *p, struct insn *insn,
                  struct probe_reject *why);

/* refusal_withdraw - restore refusal_site as it was built. No probe may be left there. */
void refusal_withdraw(void);

/* refusal_meet - is there a row which says that @rule refuses instructions of @kind, or
 * of any kind? From now on this row is met.
 * refusal_is_met - is there such a row for exactly @kind, and was it met?
 */
bool refusal_meet(enum insn_kind kind, enum probe_reason rule);
bool refusal_is_met(enum insn_kind kind, enum probe_reason rule);

/* refusal_row - print row @i to @text. @met: receives whether it was met
 * Return: false: there is no such row.
 */
bool refusal_row(size_t i, char *text, size_t size, bool *met);

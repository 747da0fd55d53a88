/* fuzz_insn.c - libFuzzer: gives any bytes to the decoder, and the instruction to the
 * functions of probes/insn that follow it.
 *
 *     make build/fuzz/fuzz_insn && build/fuzz/fuzz_insn -max_len=16
 *
 * The sanitizers catch reads behind the input. This file checks all other facts.
 */
#include "kernel/base/err.h"
#include "probes/insn/effects.h"
#include "probes/insn/insn.h"
#include "probes/insn/operand.h"
#include "probes/insn/relocate.h"

#include <stdlib.h>
#include <string.h>

#define ADDR UINT64_C(0xffffffff80100000)

#define MUST(cond)                                                                       \
    do {                                                                                 \
        if (!(cond))                                                                     \
            abort();                                                                     \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* check_extent - check that decoding an instruction needs all of its bytes, and none
 * behind them.
 */
static void check_extent(const struct insn *insn, const uint8_t *data)
{
    struct insn part;

    MUST(insn->len >= 1 && insn->len <= INSN_MAX_LEN);
    for (size_t len = 0; len < insn->len; len++)
        MUST(insn_decode(&part, data, len, ADDR) == -EFAULT);
    MUST(insn_decode(&part, data, insn->len, ADDR) == 0 && part.len == insn->len);
    MUST(insn->kind < INSN_KIND_COUNT && insn->class < INSN_CLASS_COUNT);
    MUST(insn->imm_off + insn->imm_len <= insn->len || insn->imm_len == 0);
    MUST(insn->disp_off + insn->disp_len <= insn->len || insn->disp_len == 0);
}

static void check_effects(const struct insn *insn)
{
    struct insn_effects e;

    insn_effects(insn, &e);
    MUST(!(e.regs_killed & e.regs_read) && !(e.flags_killed & e.flags_read));
    MUST(!(e.regs_killed & ~e.regs_written) && !(e.flags_killed & ~e.flags_written));
    MUST(!((e.flags_read | e.flags_written) & ~INSN_FLAGS_ALL));
}

static void check_operand(const struct insn *insn)
{
    struct pt_regs regs;

    memset(&regs, 0xa5, sizeof(regs));
    if (insn->has_mem)
        insn_effective_address(insn, &regs);
    (*insn_reg(&regs, insn->rm))++;
}

/* check_relocation - check that an instruction that is moved away and back again is the
 * same: it has the same bytes, or the length that the first move has given it.
 */
static void check_relocation(const struct insn *insn)
{
    uint8_t there[INSN_RELOCATED_MAX_LEN], back[INSN_RELOCATED_MAX_LEN];
    struct insn moved;
    size_t len, back_len;

    if (insn_relocate(there, sizeof(there), insn, ADDR + 0x12345, &len))
        return;
    MUST(len == insn_relocated_len(insn));
    MUST(insn_decode(&moved, there, len, ADDR + 0x12345) == 0);
    if (moved.len != len) /* the copy has several instructions, such as loop and jmp */
        return;
    MUST(moved.kind == insn->kind && moved.target == insn->target);
    MUST(moved.mem == insn->mem);
    if (insn_relocate(back, sizeof(back), &moved, ADDR, &back_len))
        return;
    MUST(back_len == len);
    if (len == insn->len && !insn_is_branch(insn))
        MUST(memcmp(back, insn->bytes, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct insn insn;
    int err = insn_decode(&insn, data, size, ADDR);

    if (err) {
        MUST(err == -EILSEQ || (err == -EFAULT && size < INSN_MAX_LEN));
        return 0;
    }
    check_extent(&insn, data);
    check_effects(&insn);
    check_operand(&insn);
    check_relocation(&insn);
    return 0;
}

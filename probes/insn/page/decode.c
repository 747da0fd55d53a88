/* decode.c - the decoder and the planner of jumps for a page: bytes in, lines of text out.
 *
 * The file is compiled for wasm32, where an address has 32 bits. Kernel text and all that
 * its jumps reach lie in the last 4 GiB of the address space, so the lower 32 bits of an
 * address are enough. There is one exception: a sum beyond the end of the address space.
 * With 64-bit addresses the sum is outside of these 4 GiB. With 32-bit addresses it is at
 * their beginning, below MARGIN. So there are no pads below MARGIN.
 *
 * tests/tools/test_decode_page.py compares the page with a program of the host, which is
 * built from the same source and has addresses of 64 bits.
 */
#include "kernel/base/compiler.h"
#include "probes/insn/insn.h"
#include "probes/insn/mnemonic.h"
#include "probes/jump/pun.h"

#include <stdio.h>
#include <string.h>

#define LINK(addr) ((uintptr_t)UINT64_C(addr)) /* on wasm32 its lower half */
#define TEXT LINK(0xffffffff80200000)
/* TEXT is 2 MiB above the middle of the 4 GiB, and a jump reaches 2 GiB from its end. */
#define MARGIN (0x200000 + 4096)
#define BYTES_MAX 256
#define LINES_MAX 32768
#define EVICTED_MAX 8
#define WORK_MAX 65536

/* decode.js calls these. */
uint8_t *decode_input(void);
const char *decode_output(void);
unsigned decode_max(void);
void decode(unsigned len, int may_evict);

static struct {
    uint8_t bytes[BYTES_MAX + INSN_MAX_LEN];
    unsigned len;
    int may_evict;
    uint8_t starts[BYTES_MAX]; /* length of the instruction that begins there; 0: none */
    char lines[LINES_MAX];
    size_t used;
    uint64_t work[WORK_MAX / sizeof(uint64_t)];
} page;

uint8_t *decode_input(void)
{
    return page.bytes;
}

const char *decode_output(void)
{
    return page.lines;
}

unsigned decode_max(void)
{
    return BYTES_MAX;
}

/* ---- callbacks of the planner ---------------------------------------------------------- */

static bool pad_is_free(void *arg UNUSED, uintptr_t pad UNUSED)
{
    return true;
}

/* The bytes behind the typed ones are not known. */
static bool typed_byte_at(void *arg UNUSED, uintptr_t addr, uint8_t *byte)
{
    if (addr - TEXT >= page.len)
        return false;
    *byte = page.bytes[addr - TEXT];
    return true;
}

static void question(struct pun *p, const struct insn *insn)
{
    *p = (struct pun){ .addr = insn->addr,
                       .len = insn->len,
                       .is_call = insn->kind == INSN_CALL_REL };
    memcpy(p->bytes, insn->bytes, sizeof(p->bytes));
}

static bool typed_neighbour(void *arg UNUSED, uintptr_t addr, struct pun *out)
{
    struct insn insn;

    if (!page.may_evict || addr - TEXT >= page.len || !page.starts[addr - TEXT] ||
        insn_decode(&insn, page.bytes + (addr - TEXT), page.len - (addr - TEXT), addr))
        return false;
    question(out, &insn);
    return true;
}

static const struct pun_env env = {
    .pads_start = LINK(0xffffffff00000000) + MARGIN,
    .pads_end = LINK(0xfffffffffe000000),
    .hole_start = LINK(0xffffffff7e000000),
    .hole_end = LINK(0xffffffff86000000),
    .pad_is_free = pad_is_free,
    .byte_at = typed_byte_at,
    .neighbour = typed_neighbour,
};

/* ---- lines ----------------------------------------------------------------------------- */

#define SAY(...)                                                                         \
    (page.used +=                                                                        \
     (size_t)snprintf(page.lines + page.used, LINES_MAX - page.used, __VA_ARGS__))

static void say_jump(const struct pun *p)
{
    SAY("%u ", (unsigned)(p->addr - TEXT));
    for (unsigned i = 0; i < p->jump_len; i++)
        SAY("%s%02x", i ? " " : "", p->jump[i]);
}

/* say_plan - print the plan of a jump at @insn: "RUNG|bytes written|pinned|pad or 0|evicted",
 * or "none|why".
 */
static void say_plan(const struct insn *insn)
{
    struct pun p, evicted[EVICTED_MAX];
    struct pun_batch batch = { .env = &env,
                               .puns = &p,
                               .count = 1,
                               .evicted = evicted,
                               .evicted_max = EVICTED_MAX,
                               .work = page.work };

    question(&p, insn);
    p.detour = env.hole_start;
    if (pun_work_len(1, EVICTED_MAX) > sizeof(page.work) || pun_plan(&batch)) {
        SAY("none|%s\n", pun_why_name(p.why));
        return;
    }
    SAY("%s|", pun_rung_name(p.rung));
    say_jump(&p);
    SAY("|%u|%08x|", (unsigned)pun_pinned(&p), (unsigned)p.pad);
    for (size_t i = 0; i < batch.evicted_count; i++) {
        SAY("%s", i ? "," : "");
        say_jump(&evicted[i]);
    }
    SAY("\n");
}

/* Print "OFFSET LENGTH KIND CLASS|mnemonic|" and the plan; if no instruction begins there,
 * "OFFSET 0".
 */
static unsigned say_insn(unsigned off)
{
    char name[INSN_MNEMONIC_MAX];
    struct insn insn;

    if (insn_decode(&insn, page.bytes + off, page.len - off, TEXT + off)) {
        SAY("%u 0\n", off);
        return 1;
    }
    SAY("%u %u %s %s|%s|", off, insn.len, insn_kind_name(insn.kind),
        insn_class_name(insn.class), insn_mnemonic(name, &insn) ? name : "");
    say_plan(&insn);
    return insn.len;
}

/* find_starts - find where instructions begin. This comes before any plan, because the
 * planner also looks at the instructions behind the one that it plans for.
 */
static void find_starts(void)
{
    struct insn insn;

    memset(page.starts, 0, sizeof(page.starts));
    for (unsigned off = 0; off < page.len;
         off += page.starts[off] ? page.starts[off] : 1u)
        if (!insn_decode(&insn, page.bytes + off, page.len - off, TEXT + off))
            page.starts[off] = insn.len;
}

/* decode - decode the first @len bytes of decode_input() to lines in decode_output().
 * @len:       in bytes; more than decode_max() count as decode_max()
 * @may_evict: may a plan make instructions behind its jump jumps as well?
 */
void decode(unsigned len, int may_evict)
{
    page.len = len < BYTES_MAX ? len : BYTES_MAX;
    page.may_evict = may_evict;
    page.used = 0;
    page.lines[0] = '\0';
    find_starts();
    for (unsigned off = 0; off < page.len && page.used + 1024 < LINES_MAX;)
        off += say_insn(off);
}

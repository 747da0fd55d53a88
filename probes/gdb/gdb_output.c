/* gdb_output.c - owns the rings of texts, and makes packets of them.
 *
 * A hit, or the stub's thread, writes texts. The reader sends them: it is the serving
 * CPU, or an NMI that the tick sends to its own CPU. A CPU that sends in an NMI stands
 * only after that NMI, and no CPU serves before all CPUs stand. So there is one reader at
 * a time.
 */
#include "probes/gdb/gdb_output.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "probes/gdb/gdb_line.h"
#include "probes/gdb/gdb_rings.h"

#include <stdio.h>
#include <string.h>

#define PAGES 4 /* of each CPU's ring */
#define PIECE 1024

static struct gdb_rings rings;
static struct gdb_out out;
static bool is_waiting; /* a text was written after the last look of the reader */
static uint64_t lost;   /* atomic: texts lost, not told yet: ring full, or line slow */
static bool is_merging; /* the reader has begun to merge the rings, and not finished */

INIT bool gdb_output_init(void)
{
    return gdb_rings_init(&rings, PAGES, false);
}

static void output_lose(uint64_t count)
{
    __atomic_fetch_add(&lost, count, __ATOMIC_RELAXED);
}

void gdb_output_put(const char *text, size_t len)
{
    void *at;

    if (!rings.count || !len)
        return;
    if (len > GDB_OUTPUT_MAX)
        len = GDB_OUTPUT_MAX;
    preempt_disable();
    at = gdb_rings_write(&rings, sizeof(uint16_t) + len);
    if (at) {
        *(uint16_t *)at = (uint16_t)len;
        memcpy((uint16_t *)at + 1, text, len);
        gdb_rings_commit(&rings);
    } else {
        output_lose(1);
    }
    preempt_enable();
    __atomic_store_n(&is_waiting, true, __ATOMIC_RELEASE);
}

bool gdb_output_is_waiting(void)
{
    return READ_ONCE(is_waiting) || READ_ONCE(is_merging) || gdb_line_is_slow();
}

static void make_piece(const char *text, size_t len)
{
    gdb_out_start(&out);
    gdb_put_text(&out, "O");
    gdb_put_hex(&out, text, len);
}

static bool send_piece(const char *text, size_t len)
{
    make_piece(text, len);
    return gdb_line_send(&out);
}

void gdb_output_now(const char *text, size_t len)
{
    while (len) {
        size_t n = len < PIECE ? len : PIECE;

        make_piece(text, n);
        gdb_line_answer(&out);
        text += n;
        len -= n;
    }
}

/* tell_lost - tell the debugger how many texts are lost. The ring could tell it only with
 * the next text that is not lost.
 */
static void tell_lost(void)
{
    uint64_t count = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
    char text[64];
    int len = scnprintf(text, sizeof(text), "[%lu texts are lost]\n", count);

    if (!count)
        return;
    if (!send_piece(text, (size_t)len)) {
        output_lose(count);
        __atomic_store_n(&is_waiting, true, __ATOMIC_RELEASE);
    }
}

void gdb_output_send(size_t most)
{
    struct merged next;
    size_t sent = 0;

    if (!gdb_line_flush())
        return;
    if (!is_merging && !__atomic_exchange_n(&is_waiting, false, __ATOMIC_ACQ_REL))
        return;
    if (!is_merging)
        gdb_rings_begin(&rings, MERGE_TAKE);
    is_merging = true;
    while (sent < most && is_merging && gdb_line_flush()) {
        const uint16_t *text;

        is_merging = merge_next(&rings.merge, &next);
        if (!is_merging) {
            tell_lost();
            return;
        }
        text = next.event.data;
        if (!send_piece((const char *)(text + 1), *text))
            output_lose(1);
        sent += *text;
    }
}

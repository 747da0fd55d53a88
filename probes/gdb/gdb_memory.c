/* gdb_memory.c - reads memory that may be unreadable, and shows the original bytes in
 * place of the bytes that probes have changed.
 *
 * No function here waits for the engine's locks: the kernel may have stopped in the
 * middle of a change of text. A site holds its original bytes from before the first
 * change of its text until after the last change, and it is found without a lock. So the
 * original bytes are shown for every site, whatever its text is at the moment.
 */
#include "probes/gdb/gdb_memory.h"

#include "kernel/base/bits.h"
#include "kernel/cpu/instr.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/paging.h"
#include "probes/core/life.h"
#include "probes/core/platform.h"
#include "probes/core/registry.h"
#include "probes/insn/insn.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/port/port_held.h"
#include "probes/region/region.h"
#include "probes/returns/return_point.h"

#include <string.h>

#define WORD sizeof(uintptr_t)

/* ---- reading ---- */

/* read_raw - read page by page, up to the first page that cannot be read. */
static size_t read_raw(uint8_t *out, uintptr_t addr, size_t len)
{
    size_t done = 0;

    while (done < len) {
        size_t n = PAGE_SIZE - (addr + done) % PAGE_SIZE;

        if (n > len - done)
            n = len - done;
        if (copy_nofault(out + done, (const void *)(addr + done), n))
            break;
        done += n;
    }
    return done;
}

static size_t changed_len(const struct site *site)
{
    size_t jump = jump_site(site)->jump_len;

    return jump > site->len ? jump : site->len;
}

/* A site that begins in front of @addr may reach into the bytes that are read. */
static void show_original_text(uint8_t *bytes, uintptr_t addr, size_t len)
{
    unsigned long irqs = irq_save(); /* they are on in some hits of tracepoints */

    for (uintptr_t at = addr - (INSN_MAX_LEN - 1); at != addr + len; at++) {
        const struct site *site = registry_find(at);

        for (size_t i = 0; site && i < changed_len(site); i++)
            if (at + i - addr < len)
                bytes[at + i - addr] = site->bytes[i];
    }
    irq_restore(irqs);
}

/* original_return - return the original of @word, which lies at @slot, if it is a return
 * address that a probe has exchanged; else @word.
 */
static uintptr_t original_return(uintptr_t slot, uintptr_t word)
{
    if (!return_point_is(word))
        return word;
    return backtrace_original(word, (const uintptr_t *)slot, 0);
}

/* A word that is read only in part is handled, too. */
static void show_original_returns(uint8_t *bytes, uintptr_t addr, size_t len)
{
    for (uintptr_t slot = align_down(addr, WORD); slot < addr + len; slot += WORD) {
        uintptr_t word, original;
        uint8_t shown[WORD];

        if (read_raw((uint8_t *)&word, slot, WORD) != WORD)
            continue;
        original = original_return(slot, word);
        if (original == word)
            continue;
        memcpy(shown, &original, WORD);
        for (size_t i = 0; i < WORD; i++)
            if (slot + i - addr < len)
                bytes[slot + i - addr] = shown[i];
    }
}

size_t gdb_memory_read(void *out, uintptr_t addr, size_t len)
{
    size_t done = read_raw(out, addr, len);

    if (!done)
        return 0;
    if (plat_text_contains(addr, 1) || plat_text_contains(addr + done - 1, 1))
        show_original_text(out, addr, done);
    else
        show_original_returns(out, addr, done);
    return done;
}

/* ---- writing ---- */

bool gdb_memory_must_tell;

#define USED_MAX (2 * (size_t)INSN_MAX_LEN) /* bytes that a site uses */

_Static_assert(REGION_MAX_LEN <= USED_MAX && UNOPTIMIZE_SPAN_MAX <= USED_MAX, "all uses");

/* site_uses - does @site depend on the byte at @addr, or on bytes behind it? It depends on
 * the bytes that it changes, those that its jump reads, and those of which it has copies.
 */
static bool site_uses(const struct site *site, uintptr_t addr)
{
    return site->addr + changed_len(site) > addr || unoptimize_reads(site, addr) ||
           (region_is_open(site) && site->addr + jump_site(site)->region->len > addr) ||
           (site->is_sti && site->addr + site_pair(site)->len > addr);
}

static bool is_under_probe(uintptr_t addr, size_t len)
{
    for (uintptr_t at = addr - (USED_MAX - 1); at != addr + len; at++) {
        const struct site *site = registry_find(at);

        if (site && site_uses(site, addr))
            return true;
    }
    return false;
}

static bool is_exchanged(uintptr_t addr, size_t len)
{
    for (uintptr_t slot = align_down(addr, WORD); slot < addr + len; slot += WORD) {
        uintptr_t word;

        if (read_raw((uint8_t *)&word, slot, WORD) == WORD &&
            original_return(slot, word) != word)
            return true;
    }
    return false;
}

/* forget_boundaries - the text is about to change, perhaps to instructions of other lengths.
 * If a thread is in the middle of a change, it may use what is remembered.
 */
static void forget_boundaries(void)
{
    gdb_memory_must_tell |= !port_can_arm();
    if (!port_can_arm())
        return;
    port_reserve(true);
    boundary_forget();
    port_reserve(false);
}

static const char *gdb_write_text(uintptr_t addr, const void *bytes, size_t len)
{
    if (is_under_probe(addr, len))
        return "there is a probe that uses these bytes: remove it first";
    forget_boundaries();
    for (size_t i = 0, part; i < len; i += part) {
        part = len - i < PAGE_SIZE ? len - i : PAGE_SIZE;
        if (text_poke_alias_write((uint8_t *)addr + i, (const uint8_t *)bytes + i, part))
            return "no such memory";
    }
    return NULL;
}

const char *gdb_memory_write(uintptr_t addr, const void *bytes, size_t len)
{
    uint8_t now[64];

    if (!len)
        return NULL;
    if (len <= sizeof(now) && gdb_memory_read(now, addr, len) == len &&
        !memcmp(now, bytes, len))
        return NULL;
    if (plat_text_contains(addr, len))
        return gdb_write_text(addr, bytes, len);
    if (is_exchanged(addr, len))
        return "a return probe has exchanged this return address";
    return copy_nofault((void *)addr, bytes, len) ? "no such memory, or read-only" : NULL;
}

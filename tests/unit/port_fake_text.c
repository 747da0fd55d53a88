/* port_fake_text.c - port_fake's text, and the executable memory behind it. Both are one
 * piece of memory, which is mapped twice: read-only at the addresses that the engine
 * uses, and writable at addresses that only this file uses.
 */
#define _GNU_SOURCE /* memfd_create */
#include "kernel/base/store.h"
#include "probes/core/insn_slot.h"
#include "probes/text/platform_text.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"
#include "tests/unit/symbol_list.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_LEN ((size_t)1 << 20)
#define EXEC_LEN ((size_t)16 << 20)
#define PAGE_LEN ((size_t)4096)

static uint8_t *text, *exec, *writable;
static uint8_t original[TEXT_LEN];
static size_t text_used; /* only grows, because addresses on the blacklist stay there */
static bool exec_page_used[EXEC_LEN / PAGE_LEN];

static void *map_or_die(void *at, int prot, int flags, int fd)
{
    void *p = mmap(at, TEXT_LEN + EXEC_LEN, prot, flags, fd, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

/* map_memory - map the memory where a jmp32 of the program can reach it. */
static void map_memory(void)
{
    uintptr_t near = (uintptr_t)fake_breach / PAGE_LEN * PAGE_LEN - (1ul << 30);
    int fd = memfd_create("text", 0);

    if (fd < 0 || ftruncate(fd, TEXT_LEN + EXEC_LEN))
        abort();
    text = map_or_die((void *)near, PROT_READ, MAP_SHARED, fd);
    writable = map_or_die(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    exec = text + TEXT_LEN;
    close(fd);
}

void fake_text_start(void)
{
    if (text)
        return;
    map_memory();
    fake_boot(insn_slot_init);
}

/* ---- what a test puts there ---- */

static size_t parse_hex(uint8_t *out, const char *hex)
{
    size_t n = 0;

    while (*hex) {
        char *end;

        out[n] = (uint8_t)strtoul(hex, &end, 16);
        if (end == hex)
            break;
        n++;
        hex = end;
    }
    return n;
}

static uintptr_t place(const char *hex, size_t *len)
{
    size_t at = (text_used + 15) / 16 * 16;

    *len = parse_hex(original + at, hex);
    memcpy(writable + at, original + at, *len);
    text_used = at + *len;
    if (text_used > TEXT_LEN)
        abort();
    return (uintptr_t)text + at;
}

uintptr_t fake_function(const char *name, const char *hex)
{
    size_t len;
    uintptr_t start = place(hex, &len);

    symbol_add(name, start, len);
    return start;
}

uintptr_t fake_bytes_at(const char *hex)
{
    size_t len;

    return place(hex, &len);
}

void fake_text_poke(uintptr_t addr, uint8_t byte)
{
    writable[addr - (uintptr_t)text] = byte;
}

void fake_text_put(uintptr_t addr, const char *hex)
{
    for (; *hex; hex += hex[2] ? 3 : 2)
        fake_text_poke(addr++, (uint8_t)strtoul(hex, NULL, 16));
}

bool fake_text_is_original(void)
{
    return memcmp(text, original, text_used) == 0;
}

uintptr_t fake_text_end(void)
{
    return (uintptr_t)text + TEXT_LEN;
}

uintptr_t fake_exec_start(void)
{
    return (uintptr_t)exec;
}

void fake_extent(uintptr_t *start, uintptr_t *end)
{
    *start = (uintptr_t)text;
    *end = (uintptr_t)exec + EXEC_LEN;
}

/* ---- text ---- */

static bool lies_in(uintptr_t addr, size_t len, const uint8_t *area, size_t area_len)
{
    return addr >= (uintptr_t)area && addr - (uintptr_t)area <= area_len &&
           len <= area_len - (addr - (uintptr_t)area);
}

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    if (fake_pads_read(dst, addr, len))
        return 0;
    if (!lies_in(addr, len, text, TEXT_LEN + EXEC_LEN) || fake_is_bad(addr, len))
        return -EFAULT;
    memcpy(dst, (const void *)addr, len);
    return 0;
}

/* note_text - add one word to the log for each byte that the write of @bytes changes. */
static void note_text(const uint8_t *now, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (now[i] != bytes[i])
            fake_note(bytes[i] == 0xcc ? "int3" : "original");
}

static const char *word_of_cell(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    if (addr % PAGE_LEN == 0)
        return "header";
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0xcc)
            return "cell";
    return "clear";
}

int plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    if (!plat_lock_held(PLAT_TEXT))
        fake_breach(__func__, "PLAT_TEXT is not held");
    if (fake_pads_write(addr, bytes, len))
        return 0;
    if (!lies_in(addr, len, text, TEXT_LEN) && !plat_exec_contains(addr))
        return -EFAULT;
    if (lies_in(addr, len, text, TEXT_LEN))
        note_text((const uint8_t *)addr, bytes, len);
    else
        fake_note(word_of_cell(addr, bytes, len));
    store_bytes(writable + (addr - (uintptr_t)text), bytes, len);
    if (fake.on_write)
        fake.on_write(addr, len);
    return 0;
}

bool plat_fetches_words(void)
{
    return fake.fetches_words;
}

bool plat_text_contains(uintptr_t addr, size_t len)
{
    return lies_in(addr, len, text, TEXT_LEN);
}

bool plat_text_is_built(uintptr_t line, const uint8_t *bytes)
{
    return memcmp(bytes, original + (line - (uintptr_t)text), PLAT_LINE_LEN) == 0;
}

/* ---- executable memory ---- */

static size_t find_exec_pages(size_t pages)
{
    size_t run = 0;

    for (size_t i = 0; i < EXEC_LEN / PAGE_LEN; i++) {
        run = exec_page_used[i] ? 0 : run + 1;
        if (run == pages)
            return i + 1 - pages;
    }
    abort();
}

void *plat_exec_alloc(size_t len)
{
    size_t first;

    fake_check_may_lock(__func__);
    if (!len || len % PAGE_LEN)
        fake_breach(__func__, "not a multiple of the page size");
    if (fake_must_fail())
        return NULL;
    first = find_exec_pages(len / PAGE_LEN);
    memset(&exec_page_used[first], true, len / PAGE_LEN);
    memset(writable + TEXT_LEN + first * PAGE_LEN, 0xcc, len);
    fake.exec_bytes += len;
    return exec + first * PAGE_LEN;
}

void plat_exec_free(void *p, size_t len)
{
    size_t first = (size_t)((uint8_t *)p - exec) / PAGE_LEN;

    fake_check_may_lock(__func__);
    for (size_t i = 0; i < len / PAGE_LEN; i++) {
        if (!exec_page_used[first + i])
            fake_breach(__func__, "was not allocated");
        exec_page_used[first + i] = false;
    }
    fake.exec_bytes -= len;
}

void plat_exec_window(uintptr_t *start, size_t *len)
{
    *start = (uintptr_t)exec;
    *len = EXEC_LEN;
}

bool plat_exec_contains(uintptr_t addr)
{
    return lies_in(addr, 1, exec, EXEC_LEN) &&
           exec_page_used[(addr - (uintptr_t)exec) / PAGE_LEN];
}

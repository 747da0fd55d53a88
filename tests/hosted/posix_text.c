/* posix_text.c - makes text and executable memory that can be written through an alias.
 *
 * Each piece is shared memory that is mapped twice: executable at its own address, and
 * writable at another address, the alias.
 */
#define _GNU_SOURCE
#include "probes/jump/platform_jump.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include "kernel/base/err.h"
#include "kernel/base/store.h"
#include "kernel/cpu/fetch.h"
#include "kernel/mm/extable.h"
#include "probes/text/platform_text.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_LEN ((size_t)4096)
#define EXEC_LEN ((size_t)16 << 20)
#define MADE_LEN ((size_t)16 << 20)
#define NEAR_STEP ((uintptr_t)1 << 20)
#define NEAR_END ((uintptr_t)0x7fff0000) /* the memory of a sanitizer begins there */

extern const char __executable_start[]; /* defined by the linker */

struct piece {
    uintptr_t start;
    size_t len;
    uint8_t *alias;
};

static struct piece program, exec, made; /* set at the start, then constant */
static size_t made_used;
static uint8_t exec_page_used[EXEC_LEN / PAGE_LEN];
static _Atomic size_t exec_pages;

static bool contains(const struct piece *r, uintptr_t addr, size_t len)
{
    return addr >= r->start && addr - r->start <= r->len &&
           len <= r->len - (addr - r->start);
}

static const struct piece *piece_of(uintptr_t addr, size_t len)
{
    if (contains(&program, addr, len))
        return &program;
    if (contains(&made, addr, len))
        return &made;
    return contains(&exec, addr, len) ? &exec : NULL;
}

/* ---- mapping ---- */

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static int memory_new(size_t len, uint8_t **alias)
{
    int fd = memfd_create("text", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)len))
        die("memfd");
    *alias = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*alias == MAP_FAILED)
        die("alias");
    return fd;
}

static int find_program_text(struct dl_phdr_info *info, size_t size UNUSED, void *arg)
{
    struct piece *r = arg;

    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + ph->p_vaddr;

        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
            continue;
        r->start = start & ~(PAGE_LEN - 1);
        r->len = (start + ph->p_memsz - r->start + PAGE_LEN - 1) & ~(PAGE_LEN - 1);
    }
    return 1; /* the first object is the program; stop before the libraries */
}

/* text_rights - gdb writes its breakpoints at the addresses where they are executed.
 * Linux allows this in shared memory only if the program may write there, too.
 */
static int text_rights(void)
{
    return PROT_READ | PROT_EXEC | (getenv("UNDER_GDB") ? PROT_WRITE : 0);
}

/* take_over_program - replace the program's text by shared memory with the same bytes,
 * while the program runs. The system call is direct, because sanitizers would intercept
 * mmap().
 */
static void take_over_program(void)
{
    int fd;

    dl_iterate_phdr(find_program_text, &program);
    fd = memory_new(program.len, &program.alias);
    memcpy(program.alias, (const void *)program.start, program.len);
    if (syscall(SYS_mmap, program.start, program.len, text_rights(),
                MAP_SHARED | MAP_FIXED, fd, 0) == -1)
        die("text");
    close(fd);
}

static void *map_near(size_t len, int fd)
{
    uintptr_t at = (program.start + program.len + 2 * NEAR_STEP) & ~(NEAR_STEP - 1);

    for (; at < NEAR_END; at += NEAR_STEP) {
        void *p =
            mmap((void *)at, len, text_rights(), MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

        if (p != MAP_FAILED)
            return p;
    }
    die("no room near the text");
}

void text_init(void)
{
    uint8_t *alias;
    int fd;

    take_over_program();
    fd = memory_new(EXEC_LEN + MADE_LEN, &alias);
    exec.start = (uintptr_t)map_near(EXEC_LEN + MADE_LEN, fd);
    exec.len = EXEC_LEN;
    exec.alias = alias;
    made.start = exec.start + EXEC_LEN;
    made.len = MADE_LEN;
    made.alias = alias + EXEC_LEN;
    close(fd);
}

/* ---- text ---- */

uint8_t *posix_text_alias(uintptr_t addr)
{
    const struct piece *r = piece_of(addr, 1);

    return r ? r->alias + (addr - r->start) : NULL;
}

uint8_t *posix_text_new(size_t len)
{
    uint8_t *p = (uint8_t *)made.start + made_used;

    len = (len + PAGE_LEN - 1) & ~(PAGE_LEN - 1);
    if (len > MADE_LEN - made_used)
        die("made text");
    memset(made.alias + made_used, 0xcc, len);
    made_used += len;
    return p;
}

void posix_text_set(uintptr_t addr, const void *bytes, size_t len)
{
    memcpy(posix_text_alias(addr), bytes, len);
    plat_sync_cores();
}

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    return copy_nofault(dst, (const void *)addr, len);
}
NOKPROBE(plat_text_read);

int plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    const struct piece *r = piece_of(addr, len);
    uint8_t *alias;

    if (!plat_lock_held(PLAT_TEXT))
        plat_bug("text is written without its lock", addr);
    alias = r ? r->alias + (addr - r->start) : pads_alias(addr, len);
    if (!alias)
        return -EFAULT;
    store_bytes(alias, bytes, len);
    return 0;
}

int plat_text_store(uintptr_t addr, const void *bytes, size_t len)
{
    return plat_text_write(addr, bytes, len);
}

bool plat_fetches_words(void)
{
    return cpu_fetches_words();
}

bool plat_text_contains(uintptr_t addr, size_t len)
{
    return contains(&program, addr, len) || contains(&made, addr, len);
}

/* ---- executable memory ---- */

void *plat_exec_alloc(size_t len)
{
    size_t pages = len / PAGE_LEN, run = 0;

    for (size_t i = 0; i < EXEC_LEN / PAGE_LEN; i++) {
        run = exec_page_used[i] ? 0 : run + 1;
        if (run < pages)
            continue;
        i -= pages - 1;
        memset(&exec_page_used[i], 1, pages);
        memset(exec.alias + i * PAGE_LEN, 0xcc, len);
        exec_pages += pages;
        return (void *)(exec.start + i * PAGE_LEN);
    }
    return NULL;
}

void plat_exec_free(void *p, size_t len)
{
    size_t first = ((uintptr_t)p - exec.start) / PAGE_LEN;

    memset(exec.alias + first * PAGE_LEN, 0xcc, len);
    memset(&exec_page_used[first], 0, len / PAGE_LEN);
    exec_pages -= len / PAGE_LEN;
}

void plat_exec_window(uintptr_t *start, size_t *len)
{
    *start = exec.start;
    *len = exec.len;
}

void text_extent(uintptr_t *start, uintptr_t *text, uintptr_t *end)
{
    *start = (uintptr_t)__executable_start;
    *text = program.start;
    *end = made.start + made.len;
}

bool text_is_copy(uintptr_t ip)
{
    return contains(&exec, ip, 1);
}

bool plat_exec_contains(uintptr_t addr)
{
    return contains(&exec, addr, 1);
}

/* ---- memory ---- */

static _Atomic size_t blocks;

void *plat_alloc(size_t len)
{
    void *p = calloc(1, len ? len : 1);

    blocks += p != NULL;
    return p;
}

void plat_free(void *p)
{
    blocks -= p != NULL;
    free(p);
}

size_t posix_blocks(void)
{
    return blocks + exec_pages + pads_used();
}

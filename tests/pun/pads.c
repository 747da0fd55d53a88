/* pads.c - makes the landing pads of all plans. It implements as much of platform.h as
 * they need: the address of a page is only a number, and a frame is memory of the host.
 */
#include "tests/pun/pads.h"

#include "kernel/base/err.h"
#include "probes/insn/encode.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE_LEN 4096u
#define PAGES ((size_t)1 << 20)
#define FRAMES_MAX 65536u
#define REACH_START UINT64_C(0xffffffff00000000)
#define PADS_END UINT64_C(0xfffffffffe000000)

static const struct pun_env *the_env;
static uint32_t shown[PAGES]; /* by page: frame + 1, or 0 */
static uint8_t *frames[FRAMES_MAX];
static size_t heap;

static uint8_t *find(uintptr_t addr)
{
    uint32_t id = shown[(addr - REACH_START) / PAGE_LEN % PAGES];

    return id ? frames[id - 1] + addr % PAGE_LEN : NULL;
}

/* ---- platform.h ---- */

void plat_pad_range(struct plat_pad_range *out)
{
    *out = (struct plat_pad_range){ REACH_START, PADS_END, the_env->hole_start,
                                    the_env->hole_end };
}

int plat_pad_frame_new(uint64_t *id, const uint8_t *content)
{
    uint32_t i = 0;

    while (i < FRAMES_MAX && frames[i])
        i++;
    if (i == FRAMES_MAX)
        return -ENOMEM;
    frames[i] = malloc(PAGE_LEN);
    memcpy(frames[i], content, PAGE_LEN);
    *id = i + 1;
    return 0;
}

void plat_pad_frame_free(uint64_t id)
{
    free(frames[id - 1]);
    frames[id - 1] = NULL;
}

int plat_pad_page_show(uintptr_t page, uint64_t old UNUSED, uint64_t id)
{
    shown[(page - REACH_START) / PAGE_LEN % PAGES] = (uint32_t)id;
    return 0;
}

void plat_pad_pages_unmap(const uintptr_t *pages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        plat_pad_page_show(pages[i], 0, 0);
}

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const uint8_t *from = find(addr + i);

        if (!from)
            return -EFAULT;
        ((uint8_t *)dst)[i] = *from;
    }
    return 0;
}

int plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    uint8_t *to = find(addr);

    if (!to || addr % PAGE_LEN + len > PAGE_LEN)
        return -EFAULT;
    memcpy(to, bytes, len);
    return 0;
}

void *plat_alloc(size_t len)
{
    size_t *p = calloc(1, len + sizeof(*p));

    if (!p)
        return NULL;
    *p = len;
    heap += len;
    return p + 1;
}

void plat_free(void *p)
{
    size_t *block = p;

    if (!block--)
        return;
    heap -= *block;
    free(block);
}

void plat_lock(enum plat_lock lock UNUSED)
{
}

void plat_unlock(enum plat_lock lock UNUSED)
{
}

_Noreturn void plat_bug(const char *what, uintptr_t where)
{
    printf("Bail out! %s: %#lx\n", what, where);
    exit(1);
}

/* ---- all pads ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t tables_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < PAGES; i += 512) {
        size_t k = 0;

        while (k < 512 && !shown[i + k])
            k++;
        count += k < 512;
    }
    return count;
}

/* leads_to - does the pad lead to @target? In place of pad_target(), which assumes that
 * the range of pads never changes. Here each image has its own range.
 */
static bool leads_to(uintptr_t pad, uintptr_t target)
{
    uint8_t bytes[PAD_LEN];

    return !plat_text_read(bytes, pad, PAD_LEN) &&
           insn_jmp32_target(bytes, pad) == target;
}

static void pads_follow(struct pads_result *r, const struct pad_jump *jumps)
{
    for (size_t i = 0; i < r->pads; i++)
        r->problems += !leads_to(jumps[i].pad, jumps[i].target);
    r->pages = pad_pages();
    r->frames = pad_frames();
    r->tables = tables_count();
    r->heap = heap;
}

struct pads_result pads_lay(const struct pun_env *env, const struct pun *puns,
                            size_t count)
{
    struct pads_result r = { 0 };
    uintptr_t *pads = calloc(count + 1, sizeof(pads[0]));
    struct pad_jump *jumps = calloc(count + 1, sizeof(jumps[0]));
    double start;

    the_env = env;
    for (size_t i = 0; i < count; i++) {
        if (puns[i].rung == PUN_NONE || !puns[i].pad)
            continue;
        pads[r.pads] = puns[i].pad;
        jumps[r.pads++] = (struct pad_jump){ puns[i].pad, puns[i].detour };
    }
    start = now();
    r.problems += pad_reserve(pads, r.pads) != 0;
    pad_fill(jumps, r.pads);
    r.seconds = now() - start;
    pads_follow(&r, jumps);
    start = now();
    pad_free_all(pads, r.pads);
    r.seconds += now() - start;
    r.problems += heap + pad_pages() + pad_frames() != 0;
    free(pads);
    free(jumps);
    return r;
}

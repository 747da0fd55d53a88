/* memmap.h - defines the address map. Pure numbers; linker.ld asserts that it agrees.
 *
 *   0xffff800000000000  direct map of physical memory
 *   0xffffc00000000000  stacks, each above a guard page
 *   0xffffc10000000000  pages mapped on request: devices, large areas
 *   0xffffc20000000000  poke aliases: pages through which a CPU writes text
 *   0xffffc3000002b000  per-CPU areas, each with counters behind it
 *   0xffffffff00000000  -4 GiB: a rel32 in kernel text reaches each address from here on;
 *        :              these are reserved for landing pads, except for
 *   0xffffffff7e000000  the low detour arena, 32 MiB
 *   0xffffffff80000000  -2 GiB: 2 MiB that are never mapped
 *   0xffffffff80200000  the image; behind its text a hole, where the text of boot was
 *        :              the module window, 64 MiB, at the next 2 MiB boundary
 *        :              the high detour arena, 32 MiB, behind it
 *
 * Nothing else may ever be placed above -4 GiB. The displacement of a pun is made of
 * bytes of the instructions behind it: so a pun may land at any address there, and the
 * page of this address must be free.
 */
#pragma once

#include "kernel/base/bits.h"

#include <stdint.h>

#define PAGE_SIZE 4096ul
#define LARGE_PAGE_SIZE (2 * MiB)
#define MAX_CPUS 64

#define DIRECT_MAP_BASE UINT64_C(0xffff800000000000)
#define DIRECT_MAP_MAX (512 * GiB) /* one entry of the root; RAM behind it is left out */
#define STACK_AREA_BASE UINT64_C(0xffffc00000000000)
#define VMAP_AREA_BASE UINT64_C(0xffffc10000000000)
#define POKE_AREA_BASE UINT64_C(0xffffc20000000000)
#define POKE_AREA_STRIDE (16 * KiB) /* per CPU: two pages, then a gap */

/* An area is one page for struct percpu, then counters of 8 bytes. A counter has the same
 * distance from GS on each CPU, so one instruction counts on any CPU. The base is not a
 * round address: an emulator finds an entry of its TLB by the low bits of the page
 * number. At a round address these bits would be 0, as for the first page of most other
 * things, and each of the two pages would push the other one out of the TLB.
 */
#define PERCPU_AREA_BASE UINT64_C(0xffffc3000002b000)
#define PERCPU_AREA_STRIDE (64 * MiB)
#define PERCPU_COUNTERS_OFF PAGE_SIZE
#define PERCPU_COUNTERS_MAX ((PERCPU_AREA_STRIDE - PERCPU_COUNTERS_OFF) / 8)

#define REACH_START UINT64_C(0xffffffff00000000)
#define KERNEL_VMA UINT64_C(0xffffffff80000000)
#define IMAGE_START (KERNEL_VMA + 2 * MiB)

#define MODULE_WINDOW_LEN (64 * MiB)
#define ARENA_LEN (32 * MiB)
#define ARENA_LOW_START (KERNEL_VMA - ARENA_LEN)

extern char _text[], _etext[], _rodata[], _erodata[], _sdata[], _edata[], _bss[], _ebss[];
extern char _tables[], _end[];
extern char _init_text[], _init_text_end[], _init_end[]; /* text, then data */

static inline uintptr_t module_window_start(void)
{
    return align_up((uintptr_t)_end, LARGE_PAGE_SIZE);
}

static inline uintptr_t arena_high_start(void)
{
    return module_window_start() + MODULE_WINDOW_LEN;
}

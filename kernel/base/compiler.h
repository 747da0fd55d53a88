/* compiler.h - attributes and small helpers that every file may use. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define PACKED __attribute__((packed))
#define ALIGNED(n) __attribute__((aligned(n)))
#define SECTION(name) __attribute__((section(name)))
#define UNUSED __attribute__((unused))
#define USED __attribute__((used))
/* INIT: only boot calls this function; its memory is freed when boot is over. INIT_DATA:
 * only boot uses this variable; its memory is freed, too. Code and data that stay may
 * refer to neither: kernel/module/init_refs.py checks that.
 */
#define INIT SECTION(".init.text")
#define INIT_DATA SECTION(".init.data")
#define HOT __attribute__((hot))   /* lies in one page with others; see linker.ld */
#define COLD __attribute__((cold)) /* of a file for speed: hits do not run through it */
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* COLD_LABEL stands behind a label: the code there is not expected to run. */
#ifdef __clang__
#define COLD_LABEL
#else
#define COLD_LABEL __attribute__((cold))
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* AS_TEXT: the value of a macro as a literal string. */
#define AS_TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member)                                                  \
    ((type *)((uint8_t *)(ptr)-offsetof(type, member)))

/* Exactly one access: the compiler does not split, repeat or invent it. */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define barrier() __asm__ volatile("" ::: "memory")

/* NOKPROBE(fn): fn belongs to the re-entry core and can never carry a probe. The mark
 * records the function's address; its extent comes from the symbol table.
 */
#define NOKPROBE(fn)                                                                     \
    static const uintptr_t nokprobe_##fn USED SECTION(".nokprobe") = (uintptr_t)(fn)

/* NORETPROBE(fn): fn can never carry a return probe. When fn returns, the CPU is on
 * another stack, or runs another thread, than when fn was entered. But a return probe
 * prepares the stack and the thread that it finds at the entry.
 */
#define NORETPROBE(fn)                                                                   \
    static const uintptr_t noretprobe_##fn USED SECTION(".noretprobe") = (uintptr_t)(fn)

/* For helpers of the re-entry core, which must always be inlined: a copy out of line
 * could carry a probe.
 */
#define NOKPROBE_INLINE static ALWAYS_INLINE

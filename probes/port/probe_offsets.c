/* probe_offsets.c - offsets in the engine's structures, for NASM; kernel/cpu/asm_offsets.c
 * has those of the kernel. Offsets that begin with CPU_ and HIT_ are relative to GS.
 */
#include "kernel/cpu/percpu.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "probes/returns/shadow.h"

#define EMIT(name, value)                                                                \
    __asm__ volatile("\n#define " #name " %0" ::"i"((unsigned long)(value)))
#define FIRST_HIT(field)                                                                 \
    (PERCPU_ROOM_OFF + offsetof(struct probe_cpu, hits) +                                \
     offsetof(struct probe_hit, field))

_Static_assert(sizeof(struct hit_facts) <= 8, "written as one word");
_Static_assert(offsetof(struct kretprobe, kp) == 0,
               "a pointer to one is one to the other");
_Static_assert(sizeof(struct kretprobe_instance) == 16, "lies in two words of an image");

static void hits_layout(void)
{
    EMIT(COUNTERS_OFF, PERCPU_COUNTERS_OFF);
    EMIT(ROOM_OFF, PERCPU_ROOM_OFF);
    EMIT(CPU_DEPTH, PERCPU_ROOM_OFF + offsetof(struct probe_cpu, depth));
    EMIT(CPU_LIGHT, PERCPU_ROOM_OFF + offsetof(struct probe_cpu, light));
    EMIT(HIT_SITE, FIRST_HIT(site));
    EMIT(HIT_REGS, FIRST_HIT(regs));
    EMIT(HIT_RUNNING, FIRST_HIT(running));
    EMIT(HIT_IS, FIRST_HIT(is));
    EMIT(IS_JUMPED, 1ul << 8 * offsetof(struct hit_facts, jumped));
    EMIT(HIT_FOUND_PREEMPT, FIRST_HIT(found.preempt));
    EMIT(HIT_FOUND_DEPTHS, FIRST_HIT(found.nmi));
    EMIT(STACK_MIN, PROBE_STACK_MIN);

    EMIT(IS_RETURN, HIT_RETURN);
}

static void probes_layout(void)
{
    EMIT(SITE_ADDR, offsetof(struct site, addr));
    EMIT(SITE_LEN, offsetof(struct site, len));
    EMIT(SITE_PROBES, offsetof(struct site, probes));
    EMIT(KPROBE_PRE, offsetof(struct kprobe, pre_handler));
    EMIT(KPROBE_FLAGS, offsetof(struct kprobe, flags));
    EMIT(KPROBE_KIND, offsetof(struct kprobe, kind));
    EMIT(KIND_RETURN, KPROBE_KIND_RETURN);
    EMIT(KPROBE_COUNTER, offsetof(struct kprobe, counter));
    EMIT(KPROBE_HITS, offsetof(struct kprobe, hits));
    EMIT(KPROBE_NEXT, offsetof(struct kprobe, next));
    EMIT(KPROBE_SITE, offsetof(struct kprobe, site));
    EMIT(KPROBE_SIZE, sizeof(struct kprobe));
    EMIT(KPROBE_DISABLED, KPROBE_FLAG_DISABLED);
    EMIT(KPROBE_SLOW_FLAGS, (uint32_t)~KPROBE_FLAGS_IDLE);
}

static void holes(void)
{
    EMIT(HOLE_SITE, PLAT_HOLE_SITE);
    EMIT(HOLE_IP, PLAT_HOLE_IP);
    EMIT(HOLE_PROBE, PLAT_HOLE_PROBE);
    EMIT(HOLE_COUNTER, PLAT_HOLE_COUNTER);
    EMIT(HOLE_HANDLER, PLAT_HOLE_HANDLER);
    EMIT(HOLE_SHARED, PLAT_HOLE_SHARED);
    EMIT(HOLE_MOVED, PLAT_HOLE_MOVED);
    EMIT(HOLE_ACROSS, PLAT_HOLE_ACROSS);
    EMIT(HOLE_COPY, PLAT_HOLE_COPY);
}

static void returns_layout(void)
{
    EMIT(KRETPROBE_ENTRY_HANDLER, offsetof(struct kretprobe, entry_handler));
    EMIT(KRETPROBE_HOLDER, offsetof(struct kretprobe, holder));
    EMIT(KRETPROBE_HANDLER, offsetof(struct kretprobe, handler));
    EMIT(SHADOW_TOP, offsetof(struct shadow, top));
    EMIT(SHADOW_LAST, offsetof(struct shadow, last));
    EMIT(SHADOW_LIMIT, offsetof(struct shadow, limit));
    EMIT(SHADOW_LEN, offsetof(struct shadow, len));
    EMIT(ENTRY_RET, offsetof(struct shadow_entry, ret));
    EMIT(ENTRY_BELOW, offsetof(struct shadow_entry, below));
    EMIT(ENTRY_HOLDER, offsetof(struct shadow_entry, holder));
    EMIT(ENTRY_SIZE, sizeof(struct shadow_entry));
    EMIT(HOLDER_RP, offsetof(struct kretprobe_holder, rp));
    EMIT(SITE_HOLDER, offsetof(struct jump_site, holder));
    EMIT(HOLDER_COUNTER, offsetof(struct kretprobe_holder, counter));
    EMIT(HOLDER_EXTRAS, offsetof(struct kretprobe_holder, extras));
}

void probe_offsets(void);

void probe_offsets(void)
{
    hits_layout();
    probes_layout();
    holes();
    returns_layout();
}

/* jump_site.h - struct jump_site: what the engine keeps for the jump at a probed address.
 *
 * The core allocates ext_site_size() bytes for each site. So each struct site is the
 * first member of a struct jump_site.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/jump/jump_stage.h"

struct kretprobe_holder;
struct region;

/* Every instruction may have a struct jump_site, so its size matters: a block of 96 bytes
 * of the heap holds at most 88 bytes.
 *
 * Locks: p and P as in struct site.
 */
struct jump_site {
    struct site site;
    struct kretprobe_holder *holder; /* [p] DETOUR_RETURN: of the return probe; or NULL */
    struct region *region; /* [p] what a jump here displaces, or has displaced; or NULL */
    int32_t detour_off;    /* [p] bytes from addr to the detour; 0: no detour */
    int32_t pad_off;       /* [P] bytes from addr to the pad of the jump; 0: no pad */
    uint16_t copy_off;     /* [p] offset of the copy in the detour's own cell */
    uint8_t jump_len;      /* [P] SITE_OPTIMIZED: bytes that the jump writes */
    uint8_t jump_span; /* [P] SITE_OPTIMIZED: bytes of the jump, with the pinned ones */
    uint8_t jump_why;  /* [P] enum probe_reason of the last refusal of a jump; 0: none */
    uint8_t kind : 4;  /* [P] enum detour_kind */
    bool saves_flags : 1; /* [P] the detour saves and restores the status flags */
    bool specialized : 1; /* [P] it is a specialized detour */
    bool linked : 1;      /* [P] the detour ends with a link: see link.h */
    uint8_t which;        /* [p] of a specialized detour: enum plat_specialized */
    uint8_t stage : 4;    /* [P] enum jump_stage */
};

_Static_assert(sizeof(struct jump_site) <= 88, "a site would not fit its block");

/* jump_site - the struct jump_site that begins with @site. Context: any. */
NOKPROBE_INLINE struct jump_site *jump_site(const struct site *site)
{
    return (struct jump_site *)(uintptr_t)site;
}

/* site_detour - the detour of @site, where its jump leads in the end; or NULL.
 * Context: any.
 * site_set_detour - set it. @detour: NULL, or an address that a jump at the site reaches
 */
NOKPROBE_INLINE uint8_t *site_detour(const struct site *site)
{
    int32_t off = READ_ONCE(jump_site(site)->detour_off);

    return off ? (uint8_t *)(site->addr + (uintptr_t)(intptr_t)off) : NULL;
}

static inline void site_set_detour(struct site *site, const uint8_t *detour)
{
    intptr_t off = detour ? (intptr_t)((uintptr_t)detour - site->addr) : 0;

    if (off != (int32_t)off)
        plat_bug("a detour is out of reach", site->addr);
    WRITE_ONCE(jump_site(site)->detour_off, (int32_t)off);
}

/* site_pad - the address of the pad that the jump of @site lands on; 0: it has no pad. */
static inline uintptr_t site_pad(const struct site *site)
{
    int32_t off = jump_site(site)->pad_off;

    return off ? site->addr + (uintptr_t)(intptr_t)off : 0;
}

static inline void site_set_pad(struct site *site, uintptr_t pad)
{
    jump_site(site)->pad_off = pad ? (int32_t)(pad - site->addr) : 0;
}

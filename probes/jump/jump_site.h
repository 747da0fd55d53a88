/* jump_site.h - what is known of a probed address for the sake of its jump.
 *
 * The core allocates each site in the size that ext_site_size() tells, so each struct site is
 * the first member of one of these.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/jump/jump_stage.h"

struct kretprobe_holder;
struct region;

/* There may be one for every instruction: 88 bytes are the most that a block of 96 holds.
 *
 * Locks: as those of struct site.
 */
struct jump_site {
    struct site site;
    struct kretprobe_holder *holder; /* [p] whose return probe DETOUR_RETURN is for */
    struct region *region; /* [p] what a jump displaces here, or once did, or NULL */
    int32_t detour_off;    /* [p] from addr to the detour; 0: there is none */
    int32_t pad_off;       /* [P] from addr to where the jump lands; 0: on the detour */
    uint16_t copy_off;     /* [p] where in the detour's own cell its copy begins */
    uint8_t jump_len;      /* [P] SITE_OPTIMIZED: bytes that the jump has changed */
    uint8_t jump_span;     /* [P] and bytes that it is made of */
    uint8_t jump_why; /* [P] enum probe_reason against a jump, when last asked; 0: none */
    uint8_t kind : 4; /* [P] enum detour_kind */
    bool saves_flags : 1; /* [P] the detour leaves the status flags as they are */
    bool
        specialized : 1; /* [P] it has code for this site only: see detour_specialized.h */
    bool linked : 1;     /* [P] it goes straight on in the next one: see link.h */
    bool saves_registers; /* [p] for a light handler: all of struct plat_light */
    uint8_t stage : 4;    /* [P] enum jump_stage */
};

_Static_assert(sizeof(struct jump_site) <= 88, "a site would not fit its block");

/* jump_site - the whole of @site. Context: any. */
NOKPROBE_INLINE struct jump_site *jump_site(const struct site *site)
{
    return (struct jump_site *)(uintptr_t)site;
}

/* site_detour - what a jump there reaches in the end, or NULL. Context: any.
 * site_set_detour - @detour: NULL, or in reach of a jump at the site
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

/* site_pad - where its jump lands; 0: on the detour, or there is no jump. */
static inline uintptr_t site_pad(const struct site *site)
{
    int32_t off = jump_site(site)->pad_off;

    return off ? site->addr + (uintptr_t)(intptr_t)off : 0;
}

static inline void site_set_pad(struct site *site, uintptr_t pad)
{
    jump_site(site)->pad_off = pad ? (int32_t)(pad - site->addr) : 0;
}

/* world.h - gives the planner the text and the address map of an image. Host only. */
#pragma once

#include "probes/jump/pun.h"
#include "tests/pun/image.h"

struct world {
    const struct image *image;
    uint8_t *text; /* the bytes as they are now; there are 64 behind the text */
    struct pun_env env;
    bool evicts; /* instructions without a probe may be evicted */
};

/* world_init - make the text of @image, and the address map of a kernel with this
 * image.
 */
void world_init(struct world *w, const struct image *image);
void world_free(struct world *w);
/* world_pun - return a request to plan a jump at the instruction at @off. */
struct pun world_pun(const struct world *w, size_t off);
/* world_write, world_restore - put the jump of @p into the text; put the original
 * back.
 */
void world_write(struct world *w, const struct pun *p);
void world_restore(struct world *w, const struct pun *p);

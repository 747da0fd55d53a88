/* pads.h - makes the landing pads of all plans. Host only. */
#pragma once

#include "probes/jump/pun.h"

struct pads_result {
    size_t pads, pages, frames, tables; /* tables: areas of 2 MiB that contain pads */
    size_t heap;                        /* bytes of heap for all pads */
    size_t problems;
    double seconds; /* to reserve, fill and give back */
};

/* pads_lay - reserve and fill the pads of @count plans, check where each pad leads, and
 * give all pads back.
 */
struct pads_result pads_lay(const struct pun_env *env, const struct pun *puns,
                            size_t count);

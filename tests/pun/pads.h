/* pads.h - the landing pads of all plans, laid out. Host only. */
#pragma once

#include "probes/jump/pun.h"

struct pads_result {
    size_t pads, pages, frames, tables; /* tables: 2 MiB of addresses with pads in them */
    size_t heap;                        /* bytes that know of them */
    size_t problems;
    double seconds; /* to reserve, fill and give back */
};

/* pads_lay - reserve and fill the pads of @count plans, follow each of them, and give all
 * back.
 */
struct pads_result pads_lay(const struct pun_env *env, const struct pun *puns,
                            size_t count);

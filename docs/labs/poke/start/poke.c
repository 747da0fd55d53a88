/* poke.c - your plans. */
#include "poke.h"

const struct poke_plan poke_one = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_ALL },
    .on_trap = POKE_WAIT,
};

const struct poke_plan poke_two = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_ALL },
    .on_trap = POKE_WAIT,
};

const struct poke_plan poke_back = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_ALL },
    .on_trap = POKE_WAIT,
};

/* text_stop.h - which of two engines changes text: docs/text-poke.md. */
#pragma once

enum text_poke_engine {
    TEXT_POKE_INT3,         /* the other CPUs go on, and trap if they run into it */
    TEXT_POKE_STOP_MACHINE, /* they are parked; only NMIs are executed meanwhile */
};

/* text_poke_set_engine - how batches are made from the next one on. Context: any.
 * text_poke_get_engine - how they are. Context: any.
 */
void text_poke_set_engine(enum text_poke_engine wanted);
enum text_poke_engine text_poke_get_engine(void);

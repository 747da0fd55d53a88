/* text_stop.h - chooses which of two engines changes text: docs/text-poke.md. */
#pragma once

enum text_poke_engine {
    TEXT_POKE_INT3,         /* the other CPUs go on, and trap if they run into the text */
    TEXT_POKE_STOP_MACHINE, /* the other CPUs stand still; they only take NMIs */
};

/* text_poke_set_engine - choose the engine for the next batch and all later ones.
 * Context: any.
 * text_poke_get_engine - return the engine that is chosen. Context: any.
 */
void text_poke_set_engine(enum text_poke_engine wanted);
enum text_poke_engine text_poke_get_engine(void);

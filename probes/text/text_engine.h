/* text_engine.h - the engines that change text, a row for each: docs/text-poke.md.
 *
 * A new engine is one file with its row, one word in TEXT_ENGINES, and one line in
 * sources.mk. The console, the boot argument text-poke=NAME, `bench text` and the tests go
 * through the rows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct text_batch;

struct text_engine {
    const char *name; /* as the user writes it */
    /* The steps that it takes: bit N stands for step N of enum text_poke_step. Each of them
     * ends with a synchronisation. Pokes that do not depend on each other take no step
     * twice. */
    uint8_t steps;
    /* choose - call text_whole_choose() for pokes of @batch, or NULL: for none.
     * run    - call text_poke_steps(@batch), for the other pokes.
     * Context: thread or held.  Locks: PLAT_TEXT held. */
    void (*choose)(struct text_batch *batch);
    void (*run)(struct text_batch *batch);
};

/* The first one is used until the user chooses another one. */
#define TEXT_ENGINES(X)                                                                  \
    X(int3)                                                                              \
    X(stop_machine)                                                                      \
    X(word)

#define TEXT_ENGINE_DECLARE(id) extern const struct text_engine text_engine_##id;
TEXT_ENGINES(TEXT_ENGINE_DECLARE)

extern const struct text_engine *const text_engines[];
extern const size_t text_engine_count;

/* text_engine_set - choose the engine for the next batch and all later ones.
 * text_engine_get - return the engine that is chosen.
 * text_engine_find - return the engine whose name is @name, of @len bytes. NULL: none.
 * Context: any.
 */
void text_engine_set(const struct text_engine *engine);
const struct text_engine *text_engine_get(void);
const struct text_engine *text_engine_find(const char *name, size_t len);

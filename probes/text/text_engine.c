/* text_engine.c - has the table of the engines, and lets the chosen one change text. */
#include "probes/text/text_engine.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "probes/core/extend.h"
#include "probes/core/text_batch.h"
#include "probes/text/text_history.h"
#include "probes/text/text_whole.h"

#include <string.h>

/* The other CPUs go on, and trap if they run into text that is being changed. */
const struct text_engine text_engine_int3 = {
    .name = "int3",
    .steps = BIT(TEXT_POKE_GUARD) | BIT(TEXT_POKE_TAIL) | BIT(TEXT_POKE_FIRST),
    .run = text_poke_steps,
};

#define ROW(id) &text_engine_##id,
const struct text_engine *const text_engines[] = { TEXT_ENGINES(ROW) };
const size_t text_engine_count = ARRAY_LEN(text_engines);

static const struct text_engine *chosen = &text_engine_int3;

void ext_poke_steps(struct text_batch *b)
{
    const struct text_engine *engine = text_engine_get();

    if (engine->choose)
        engine->choose(b);
    text_history_begin(b->pokes, b->count);
    text_whole_write(b->pokes, b->count);
    engine->run(b);
    text_history_end(b->count);
}

void text_engine_set(const struct text_engine *engine)
{
    WRITE_ONCE(chosen, engine);
}

const struct text_engine *text_engine_get(void)
{
    return READ_ONCE(chosen);
}

const struct text_engine *text_engine_find(const char *name, size_t len)
{
    for (size_t i = 0; i < text_engine_count; i++)
        if (strlen(text_engines[i]->name) == len &&
            !memcmp(text_engines[i]->name, name, len))
            return text_engines[i];
    return NULL;
}

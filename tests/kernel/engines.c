/* engines.c - runs a test with each engine that changes text. */
#include "tests/kernel/engines.h"

#include "probes/text/text_engine.h"

void for_each_engine(void (*fn)(const char *name, void *arg), void *arg)
{
    const struct text_engine *before = text_engine_get();

    for (size_t i = 0; i < text_engine_count; i++) {
        text_engine_set(text_engines[i]);
        fn(text_engines[i]->name, arg);
    }
    text_engine_set(before);
}

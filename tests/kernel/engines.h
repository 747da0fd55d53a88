/* engines.h - runs a test with each engine that changes text. */
#pragma once

/* for_each_engine - call @fn(@name, @arg) once with each engine that changes text: it is
 * chosen during the call, and @name is its name. Then the engine from before is chosen.
 */
void for_each_engine(void (*fn)(const char *name, void *arg), void *arg);

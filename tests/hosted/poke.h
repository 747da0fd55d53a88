/* poke.h - code that is changed while other threads run it: is what they compute ever
 * anything but the old or the new?
 *
 * How the bytes are changed is a protocol: a function. The engine's own are right on every
 * processor; those that are wrong show that the test would notice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Change the @len bytes at @addr, one instruction before and after, while threads may run
 * there or come there.
 */
typedef void (*poke_protocol)(uintptr_t addr, const uint8_t *bytes, size_t len);

struct poke_result {
    unsigned long pokes; /* changes made */
    unsigned long runs;  /* of the changed code */
    unsigned long torn;  /* runs that saw neither the old nor the new */
};

/* poke_stress - change a 5-byte instruction between two values with @protocol, while threads
 * run it. Its first byte lies at offset @line_off of the last cache line of a page.
 * @budget: at most so many changes; it ends early when something torn was seen
 */
struct poke_result poke_stress(poke_protocol protocol, size_t line_off,
                               unsigned long budget);

/* poke_engine - the engine's own, whichever is chosen.
 * poke_parked - a protocol: no thread is in the code, or can come there, meanwhile.
 * poke_bytewise - not one: byte after byte, and no thread is told.
 * poke_unsynced - nor that: the steps of the engine's own, in their order, without waiting
 *                 for anybody between them.
 */
void poke_engine(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_parked(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_bytewise(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_unsynced(uintptr_t addr, const uint8_t *bytes, size_t len);

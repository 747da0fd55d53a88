/* poke.h - changes code while other threads run it, and checks that the threads execute
 * the old code or the new code, but no mixture.
 *
 * A protocol is a function that changes the bytes. The engine's protocols are right on
 * every processor. Wrong protocols prove that the test would notice a mixture.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Change the @len bytes at @addr to @bytes. Both are one instruction. Threads may run
 * there, or come there, at any time.
 */
typedef void (*poke_protocol)(uintptr_t addr, const uint8_t *bytes, size_t len);

struct poke_result {
    unsigned long pokes; /* changes made */
    unsigned long runs;  /* of the changed code */
    unsigned long torn;  /* runs that executed neither the old code nor the new code */
};

/* poke_stress - change a 5-byte instruction between two values with @protocol, while
 * threads run it. Its first byte lies at offset @line_off of the last cache line of a
 * page.
 * @budget: the number of changes; fewer are made if a thread executes a mixture
 */
struct poke_result poke_stress(poke_protocol protocol, size_t line_off,
                               unsigned long budget);

/* poke_engine - change the bytes by the engine, in the way that is chosen.
 * poke_parked - change the bytes while no thread is in the code or can come there.
 * poke_bytewise - a wrong protocol: write byte after byte, without synchronisation.
 * poke_unsynced - a wrong protocol: take the steps of the engine in their order,
 *                 but without the synchronisations between them.
 */
void poke_engine(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_parked(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_bytewise(uintptr_t addr, const uint8_t *bytes, size_t len);
void poke_unsynced(uintptr_t addr, const uint8_t *bytes, size_t len);

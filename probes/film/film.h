/* film.h - slow motion: what happens at a few bytes of text while they are changed.
 *
 * While a film is made the patcher waits behind each store and each synchronisation, and what
 * happens meanwhile is noted: stores, synchronisations asked and answered, traps, copies
 * entered and left. docs/films.md has the format.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILM_BYTES_MAX 24
#define FILM_MS_MAX 1000

/* film_start - from now on, of the whole instructions from @addr on that have at least five
 * bytes in all. @addr begins an instruction.
 * @ms: to wait behind each store and synchronisation, 0..FILM_MS_MAX
 * Context: thread.
 * Return:  0; -EBUSY there is a film under way; -EINVAL no instruction; -ENOMEM.
 */
int film_start(uintptr_t addr, unsigned ms);

/* film_stop - no more; the processor goes at its usual speed.
 * Context: thread.  Return: 0; -ENOENT there is none.
 */
int film_stop(void);

/* film_print - the last film, which has been stopped: an object of JSON a line.
 * Context: thread.  Return: how many events there was no room for.
 */
unsigned film_print(struct seq *out);

/* What happens, for film_scene.c. */
enum film_event { FILM_STORE, FILM_SYNC, FILM_ACK, FILM_TRAP, FILM_COPY, FILM_BACK };

/* film_note - @cpu and @at as they stand in the line; now.
 * film_may_note - is @cpu to be told of once more before the next store or synchronisation?
 * film_has_int3 - is @addr filmed, and does an int3 stand there?
 * Context: any.
 */
void film_note(enum film_event event, unsigned cpu, uintptr_t at);
bool film_may_note(unsigned cpu);
bool film_has_int3(uintptr_t addr);

/* The scene: what goes on meanwhile. scene_open - take the traps, and let other CPUs run the
 * fixture if @addr is in it. scene_close - the reverse. scene_look - where is each CPU?
 * Context: thread.  Return: 0; -ENOMEM.
 */
int scene_open(uintptr_t addr);
void scene_close(void);
void scene_look(void);

/* film_fixture - what is filmed when nothing else is: fixture.asm. The address of
 * film_fixture_len is how many bytes of code it has.
 */
uint64_t film_fixture(uint64_t x);
extern const char film_fixture_len[];

/* film.h - films: records in slow motion what happens at a few bytes of text while the
 * engine changes them.
 *
 * While a film is made, the patcher (the thread that changes the text) waits after each
 * store and after each synchronisation. The film notes the stores, the requests to
 * synchronise and the answers of the CPUs, the traps, and when a CPU enters or leaves a
 * copy.
 *
 * A film is lines of JSON. The head: `film` (1: this format), `cpus`, `ms` (how long the
 * patcher waits), `at`, `bytes`, `lengths` (the first filmed byte, all of them when the
 * film began, the instructions there), and for a reader `title`, `says`, `labels` (of
 * bytes), `from`. An event: `t` (nanoseconds; in a model the step), `cpu`, `ev`, `at` and
 * `bytes` (stored or executed), `halted` (a CPU that was asked), `say`. `ev` is `store`;
 * `sync`: all CPUs are asked to synchronise; `ack`: this CPU has; `trap`: at an int3;
 * `copy`: in a copy, detour or pad; `back`: in the program again; and in models `run`,
 * `halt`, `note`, `end`. Between two steps of the patcher a CPU has one trap or copy.
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILM_BYTES_MAX 24
#define FILM_MS_MAX 1000

/* film_start - begin a film of the whole instructions from @addr on, until they have at
 * least five bytes in all. @addr is the address of an instruction.
 * @ms: milliseconds to wait after each store and synchronisation, 0..FILM_MS_MAX
 * Context: thread.
 * Return:  0; -EBUSY a film is being made already; -EINVAL no instruction; -ENOMEM;
 *          -EDEADLK as wait_check().
 */
int film_start(uintptr_t addr, unsigned ms);

/* film_stop - end the film; the patcher works at its usual speed again.
 * Context: thread.  Return: 0; -ENOENT no film is being made; -EDEADLK.
 */
int film_stop(void);

/* film_print - print the last film, which has been stopped: a JSON object on each line.
 * Context: thread.  Return: how many events are missing, because they had no room.
 */
unsigned film_print(struct seq *out);

/* What an event is; film_scene.c notes traps and copies. */
enum film_event { FILM_STORE, FILM_SYNC, FILM_ACK, FILM_TRAP, FILM_COPY, FILM_BACK };

/* film_note - note that @event happens now. @cpu and @at: as in the format.
 * film_may_note - may one more event of @cpu be noted before the next store or
 * synchronisation? If so, this call counts the event.
 * film_has_int3 - is @addr filmed, and is an int3 there?
 * Context: any.
 */
void film_note(enum film_event event, unsigned cpu, uintptr_t at);
bool film_may_note(unsigned cpu);
bool film_has_int3(uintptr_t addr);

/* The scene is what happens besides the work of the patcher.
 * scene_open - let the scene get traps before the engine. If @addr is in the fixture, let
 * all CPUs but CPU 0 run the fixture; a single CPU runs it, too.
 * scene_close - undo scene_open().
 * scene_look - note each thread of the fixture that has come into a copy or detour by a
 * jump, or has left it.
 * Context: thread.  Return: 0; -ENOMEM.
 */
int scene_open(uintptr_t addr);
void scene_close(void);
void scene_look(void);

/* film_fixture - compute a number from @x. The function is there to be filmed:
 * fixture.asm. The address of film_fixture_len is the number of bytes of its code.
 */
uint64_t film_fixture(uint64_t x);
extern const char film_fixture_len[];

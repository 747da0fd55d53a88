/* port_held.h - how the engine works in the context `held`: a debugger has stopped all CPUs
 * but one (docs/architecture.md).
 *
 *   locks     are free: port_can_arm(). No other CPU runs that could take them.
 *   text      is written at once, whatever engine the user has chosen for changes of text:
 *             each other CPU serialises before it goes on.
 *   jumps     are not made and not planned again. Jumps that read a changed byte become
 *             breakpoints. Later the optimizer makes jumps of all these sites.
 *   memory    Other CPUs may have stopped inside the code of the heap, and threads while
 *             they own any mutex. So the stub for gdb arms its breakpoints with memory and
 *             pages of a reserve, which this file has: port_reserve().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* port_can_arm - are the engine's locks free? Then no thread is in the middle of a change.
 * Context: any.
 */
bool port_can_arm(void);

/* port_reserve - if @on: from now on the engine's memory and its pages for cells come from
 * the reserve. Else end this. Context: held.
 */
void port_reserve(bool on);
/* port_uses_reserve - for the platform: do memory and pages come from the reserve? */
bool port_uses_reserve(void);

/* port_held_refill - fill the reserve, free the memory that waits for it (see below),
 * and let the optimizer look at the sites. Context: thread.
 */
void port_held_refill(void);

struct thread;

/* port_threads - call @fn for each thread, until @fn returns false. The list of threads is
 * read without its lock, as it is, maybe in the middle of a change. So each read may fail,
 * and the number of steps through the list has a limit. Context: held or stopped.
 */
void port_threads(bool (*fn)(struct thread *t, void *arg), void *arg);

/* For the platform: take memory from the reserve, and give it back. port_held_free()
 * returns false if @p is not of the reserve.
 * Context: held. For port_held_free() any context.
 */
void *port_held_alloc(size_t len);
bool port_held_free(void *p);
/* port_held_free_late - remember @p, memory of the heap, until port_held_refill() frees it.
 * The first word of @p is overwritten, although a CPU that stands may be reading @p.
 * port_held_free_page - the same for a page for code. Eight pages can be remembered;
 * further pages are never freed.
 * port_held_page - a page for code of the reserve; NULL: all are in use. Context: held.
 */
void port_held_free_late(void *p);
void port_held_free_page(void *p);
void *port_held_page(void);

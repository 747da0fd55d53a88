/* port_held.h - the engine while a debugger keeps all CPUs standing.
 *
 * One CPU arms breakpoints then, in whatever context it has stopped: other CPUs, and threads,
 * may hold any lock, or be in the middle of the heap. So while the machine is held
 *
 *   locks     are not taken: it is held only where both are free, and no other CPU runs
 *   memory    comes from a reserve of its own, and so does a page for cells
 *   text      is written at once: each CPU serialises before it goes on
 *   jumps     are not made, nor given other places: those that read a changed byte become
 *             breakpoints, and the optimizer makes jumps of all of them later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* port_hold - from now on the machine is held; all CPUs but this one stand.
 * Return: false: a lock of the engine is taken, and nothing has changed.
 * port_unhold - no longer; before a CPU goes on.
 * Context: any.
 */
bool port_hold(void);
void port_unhold(void);

/* port_can_hold - would port_hold() hold it? Context: any. */
bool port_can_hold(void);

/* port_is_held - Context: any. */
bool port_is_held(void);

/* port_held_refill - put back what was taken from the reserve, and let the optimizer look.
 * Context: thread.
 */
void port_held_refill(void);

/* For the platform: the reserve. port_held_free() answers false for memory of the heap. */
void *port_held_alloc(size_t len);
bool port_held_free(void *p);
/* port_held_free_late - memory of the heap, which port_held_refill() frees.
 * port_held_free_page - the same for a page; of more than eight the rest is lost.
 */
void port_held_free_late(void *p);
void port_held_free_page(void *p);
void *port_held_page(void);

/* port_held.h - how the engine works while the machine is held: a debugger has stopped all
 * CPUs but one.
 *
 * That CPU arms breakpoints in the context in which it has stopped. Other CPUs, and
 * threads, may have stopped while they hold any lock, or inside the code of the heap. So
 * while the machine is held:
 *
 *   locks     are not taken. The machine can be held only if the engine's locks are free,
 *             and no other CPU runs meanwhile.
 *   memory    comes from a reserve, and so do pages for cells.
 *   text      is written at once: each other CPU serialises before it goes on.
 *   jumps     are not made and not planned again. Jumps that read a changed byte become
 *             breakpoints. Later the optimizer makes jumps of all these sites.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* port_hold - hold the machine from now on. All other CPUs have been stopped already.
 * Return: false: a lock of the engine is taken, and nothing has changed.
 * port_unhold - end this, before another CPU goes on.
 * Context: any.
 */
bool port_hold(void);
void port_unhold(void);

/* port_can_hold - would port_hold() return true now? Context: any. */
bool port_can_hold(void);

/* port_is_held - is the machine held? Context: any. */
bool port_is_held(void);

/* port_held_refill - fill the reserve, free the memory that waits for it (see below),
 * and let the optimizer look at the sites.
 * Context: thread.
 */
void port_held_refill(void);

/* For the platform: take memory from the reserve, and give it back. port_held_free()
 * returns false if @p is not of the reserve.
 */
void *port_held_alloc(size_t len);
bool port_held_free(void *p);
/* port_held_free_late - remember @p, memory of the heap, until port_held_refill() frees it.
 * port_held_free_page - the same for a page for code. Eight pages can be remembered;
 * further pages are never freed.
 * port_held_page - a page for code of the reserve; NULL: all are in use.
 */
void port_held_free_late(void *p);
void port_held_free_page(void *p);
void *port_held_page(void);

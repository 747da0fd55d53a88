/* snapshot.h - takes snapshots: the buffer as it was at a moment. A trigger or a user
 * chooses the moment.
 */
#pragma once

#include <stdbool.h>

/* snapshot_prepare - make a second set of rings, which snapshot_take() needs.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int snapshot_prepare(void);

/* snapshot_is_allocated - has the file or a trigger asked for snapshots?
 * Linux calls this "allocated"; here the second set of rings may exist also without it.
 * Locks: the trace lock held.
 */
extern bool snapshot_is_allocated;

/* snapshot_settle - do now what the thread "snapshot" would do for a snapshot that was
 * just taken. Afterwards the snapshot can be read.
 * Context, Locks: as snapshot_prepare().
 */
void snapshot_settle(void);
/* snapshot_hold - call it before the buffer gets another size, clock or mode. No snapshot is
 * taken from now on, because the rings of the second set still have the old ones. A
 * snapshot that was just taken is set aside.
 * snapshot_release - make a second set of rings like the buffer, and allow snapshots.
 * Context, Locks: as snapshot_prepare().
 */
void snapshot_hold(void);
void snapshot_release(void);

/* snapshot_take - make a snapshot of the events that were recorded until now. Recording
 * goes on in an empty buffer. Context: any.
 * Return:  false: nothing was done, because there is no empty second set of rings. After
 *          a snapshot it takes some hundredths of a second until there is one.
 */
bool snapshot_take(void);

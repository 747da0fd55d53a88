/* snapshot.h - the buffer as it was at a moment, which a trigger may choose. */
#pragma once

/* snapshot_prepare - make a second set of rings, which snapshot_take() needs.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int snapshot_prepare(void);

/* snapshot_settle - do now what the thread would do for a snapshot that was just taken.
 * On return the snapshot can be read.
 * Context, Locks: the same.
 */
void snapshot_settle(void);
/* snapshot_resize - the buffer has a new size or clock: make the second set of rings
 * alike.
 * Context, Locks: the same.
 */
void snapshot_resize(void);

/* snapshot_take - the events recorded until now become the snapshot, and recording goes
 * on in an empty buffer. The call does nothing if there is no second set of rings, or if
 * it is not empty again since the last snapshot, which takes some hundredths of a second.
 * Context: any.
 */
void snapshot_take(void);

/* trace_add_snapshot - the file `snapshot`. Context: boot.  Return: as vfs_add_tree(). */
int trace_add_snapshot(void);

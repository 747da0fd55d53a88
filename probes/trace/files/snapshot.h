/* snapshot.h - the buffer as it was at a moment, which a trigger may choose. */
#pragma once

/* snapshot_prepare - make a second set of rings, for the trigger.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int snapshot_prepare(void);

/* snapshot_settle - a snapshot that was just taken can be read.
 * Context, Locks: the same.
 */
void snapshot_settle(void);
/* snapshot_resize - the buffer has another size or clock, and the second set follows.
 * Context, Locks: the same.
 */
void snapshot_resize(void);

/* snapshot_take - what was recorded up to now becomes the snapshot, and recording goes on in
 * an empty buffer. As long as the snapshot before it is being set aside, some hundredths of a
 * second, nothing happens.
 * Context: any.
 */
void snapshot_take(void);

/* trace_add_snapshot - the file `snapshot`. Context: boot.  Return: as vfs_add_tree(). */
int trace_add_snapshot(void);

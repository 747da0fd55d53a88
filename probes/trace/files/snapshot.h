/* snapshot.h - the buffer as it was at a moment, which a trigger may choose. */
#pragma once

#include <stdbool.h>

/* snapshot_prepare - make a second set of rings, which snapshot_take() needs.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -ENOMEM.
 */
int snapshot_prepare(void);

/* snapshot_is_allocated - has a snapshot been asked for, by the file or a trigger? As Linux
 * has it; here rings may be kept for the next one.
 * snapshot_forget - it is not any more.
 * Context, Locks: as snapshot_prepare().
 */
bool snapshot_is_allocated(void);
void snapshot_forget(void);

/* snapshot_settle - do now what the thread would do for a snapshot that was just taken.
 * On return the snapshot can be read.
 * Context, Locks: the same.
 */
void snapshot_settle(void);
/* snapshot_hold - the buffer is about to get another size or clock. From now on no snapshot
 * is taken, because a ring of the second set would stay as it is. A snapshot that was just
 * taken is set aside.
 * snapshot_release - the second set of rings is like the buffer now, and snapshots are taken
 * again.
 * Context, Locks: the same.
 */
void snapshot_hold(void);
void snapshot_release(void);

/* snapshot_take - the events recorded until now become the snapshot, and recording goes
 * on in an empty buffer.
 * Context: any.
 * Return:  false: nothing was done. There is no second set of rings, or it is not empty
 *          again since the last snapshot, which takes some hundredths of a second.
 */
bool snapshot_take(void);

/* trace_add_snapshot - the file `snapshot`. Context: boot.  Return: as vfs_add_tree(). */
int trace_add_snapshot(void);

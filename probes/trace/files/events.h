/* events.h - the files below events/, and those that list events. */
#pragma once

/* trace_add_events - events/enable, set_event, available_events.
 * trace_add_definitions - kprobe_events and what goes with it.
 * Context: boot.  Return: as vfs_add_tree().
 */
int trace_add_events(void);
int trace_add_definitions(void);

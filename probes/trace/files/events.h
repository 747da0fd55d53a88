/* events.h - makes the files below events/, and the files that list or define events. */
#pragma once

/* trace_add_events - make events/, events/enable, set_event and available_events.
 * trace_add_definitions - make kprobe_events, dynamic_events, kprobe_profile, error_log
 * and available_filter_functions. Context: boot.  Return: as vfs_add_tree().
 */
int trace_add_events(void);
int trace_add_definitions(void);

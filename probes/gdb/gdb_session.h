/* gdb_session.h - runs a session with a debugger. */
#pragma once

/* gdb_session - tell the debugger why CPU @cpu, the executing CPU, has stopped, and
 * answer its packets until it lets a CPU go. Context: held.
 */
void gdb_session(unsigned cpu);

/* gdb_session_ends - set the exit status that is told at the next GDB_WHY_EXIT.
 * Context: thread.
 */
void gdb_session_ends(unsigned status);

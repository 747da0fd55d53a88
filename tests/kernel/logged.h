/* logged.h - counts lines of the log, for kernel tests. */
#pragma once

/* logged - return how many lines of the log contain @a and, behind it, @b. @b may be "".
 * Context: thread; only one thread at a time.
 */
unsigned logged(const char *a, const char *b);

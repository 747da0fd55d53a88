/* logged.h - is it in the log? For kernel tests. */
#pragma once

/* logged - lines of the log that contain @a and, behind it, @b. @b may be "".
 * Context: thread; not two at a time.
 */
unsigned logged(const char *a, const char *b);

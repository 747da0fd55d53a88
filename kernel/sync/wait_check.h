/* wait_check.h - refuses a call in a context where the called function could not wait. */
#pragma once

/* wait_check - may the caller wait: for a mutex, for other CPUs, for quiescence? A function
 * that waits and that returns an errno calls this first, before it changes anything. So the
 * answer does not depend on the number of CPUs, or on whether a mutex is free.
 * @verb: the name of the function, for the log
 *
 * The log names @verb and the reason, if the log can be written in this context.
 *
 * Context: any.  Return: 0; -EDEADLK.
 */
int wait_check(const char *verb);

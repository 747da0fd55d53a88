/* runner.h - the socket for code that runs in the place of the shells: with the boot
 * argument `tests=`, kernel_run() calls the runner, and switches the machine off.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* runner_fn - run what the boot arguments name. @print: writes to the console.
 * Context: thread.  Return: whether everything was as it should be.
 */
typedef bool (*runner_fn)(const char *words, void (*print)(const char *text, size_t len));

/* runner_set - set the runner. Constructors call this, of the image or of a module that is
 * loaded at boot. Context: boot.
 */
void runner_set(runner_fn fn);

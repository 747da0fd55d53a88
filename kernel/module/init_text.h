/* init_text.h - what only boot needs of the image (INIT, INIT_DATA) leaves when boot is over,
 * in the way of a module: probes on it are told, its symbols go, its frames are free.
 *
 * init_text_free - returns when it is gone, or when the log says which thread keeps it. It
 *      stays as well where nothing tells the probes.
 * kernel_text_end - where the image's text ends, which begins at _text: behind that of boot,
 *      as long as it is there. Context: any.
 *
 * Context: thread; the caller will not return to text of boot.
 */
#pragma once

#include <stdint.h>

void init_text_free(void);
uintptr_t kernel_text_end(void);

/* init_text.h - frees the part of the image that only boot needs (INIT, INIT_DATA), when
 * boot is over. This part goes as a module goes: the engine is told, because of the
 * probes there, then its symbols go, then its frames are freed.
 *
 * init_text_free - free this part. On return it is gone, or the log says which thread
 * keeps it. If no watch is set (module_watch), it stays as well.
 * Context: thread. The caller will not return to text of boot.
 * kernel_text_end - return where the text of the image ends, which begins at _text. The
 * text of boot counts as long as it is there. Context: any.
 */
#pragma once

#include <stdint.h>

void init_text_free(void);
uintptr_t kernel_text_end(void);

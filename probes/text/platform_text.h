/* platform_text.h - what the room text needs of the platform, beside core/platform.h. */
#pragma once

#include <stdbool.h>

/* plat_fetches_words - does each CPU fetch an aligned word of 8 bytes in one piece, so that
 * one store of bytes in this word is seen by each fetch as a whole or not at all?
 * Context: any.
 * Source:  APM vol. 2, "Cross-Modifying Code", promises it; SDM vol. 3A, "Handling Self- and
 *          Cross-Modifying Code", does not.
 */
bool plat_fetches_words(void);

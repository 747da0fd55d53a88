/* image.h - the text of an ELF file, cut into instructions. Host only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_flags {
    IMAGE_BOUNDARY = 1, /* an instruction begins here; lens[] says how long it is */
    IMAGE_PROBED = 2,   /* and may carry a probe */
    IMAGE_PADDING = 4,  /* in no function */
};

struct image {
    const char *path;
    uintptr_t base; /* where the text would be linked in a kernel of ours */
    uintptr_t end;  /* of the whole image, there */
    size_t len;
    uint8_t *bytes;
    uint8_t *lens;
    uint8_t *flags; /* enum image_flags */
    size_t probed;  /* how many may carry a probe */
};

/* image_load - read the text of the file at @path. Boundaries come from function symbols,
 * else from the FDEs of .eh_frame, else from decoding it from its first byte on. What our
 * own kernel never probes is left out: marked functions and entry code.
 * Return: false, and it has been said why.
 */
bool image_load(struct image *image, const char *path);
void image_free(struct image *image);

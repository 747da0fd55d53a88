/* image.h - reads the text of an ELF file, and divides it into instructions. Host
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_flags {
    IMAGE_BOUNDARY = 1, /* an instruction begins here; lens[] has its length */
    IMAGE_PROBED = 2,   /* an instruction that may carry a probe begins here */
    IMAGE_PADDING = 4,  /* in no function */
};

struct image {
    const char *path;
    uintptr_t base; /* address of the text, if it were that of our kernel */
    uintptr_t end;  /* end of the whole image at these addresses */
    size_t len;
    uint8_t *bytes;
    uint8_t *lens;
    uint8_t *flags; /* enum image_flags */
    size_t probed;  /* number of instructions that may carry a probe */
};

/* image_load - read the text of the file at @path. It is decoded from the function
 * symbols; if there are none, from the FDEs of .eh_frame; if there are none, from its
 * first byte on. In our own kernel, marked functions and entry code are never probed.
 * Return: false: it has failed, and has printed the reason.
 */
bool image_load(struct image *image, const char *path);
void image_free(struct image *image);

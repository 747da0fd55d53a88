/* pun.c - your plans. */
#include "pun.h"

#include <string.h>

#define JMP 0xe9
#define JMP_LEN 5

/* This plan uses only instructions that are as long as a jump. Each gets the next pad. */
void plan(const struct text *text, struct site *sites, size_t count)
{
    uint64_t pad = text->hole_end;

    for (size_t i = 0; i < count; i++) {
        struct site *s = &sites[i];
        int32_t disp = (int32_t)(pad - (text->start + s->offset + JMP_LEN));

        if (s->len < JMP_LEN)
            continue;
        s->jump[0] = JMP;
        memcpy(s->jump + 1, &disp, sizeof(disp));
        s->jump_len = JMP_LEN;
        s->pad = pad;
        pad += PAD_LEN;
    }
}

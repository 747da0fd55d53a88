/* shared.c - writes and reads a text and its sites as facts. */
#include "docs/labs/host/pun/shared.h"

#include "docs/labs/host/grader.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIXES_MAX 10
#define BASE UINT64_C(0x700000000)
#define REACH (UINT64_C(1) << 31)
#define BELOW (REACH / 8) /* pads may be this far below the text, and not further */
#define MARGIN UINT64_C(0x10000)

struct text shared_text(const uint8_t *bytes, size_t len)
{
    uint64_t start = BASE + lab_below(0x100000);

    return (struct text){ .start = start,
                          .bytes = bytes,
                          .len = len,
                          .pads_start = start - BELOW,
                          .hole_start = start - MARGIN,
                          .hole_end = start + MARGIN,
                          .pads_end = start + REACH - MARGIN };
}

unsigned shared_prefixes(const uint8_t *at)
{
    unsigned n = 0;

    while (n < PREFIXES_MAX && at[n] && strchr("\x26\x2e\x36\x3e\x64\x65", at[n]))
        n++;
    return n < PREFIXES_MAX && (at[n] & 0xf0) == 0x40 ? n + 1 : n;
}

void shared_tell(const struct text *text, const struct site *sites, size_t count)
{
    lab_fact("%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %zu %zu",
             text->start, text->pads_start, text->hole_start, text->hole_end,
             text->pads_end, text->len, count);
    for (size_t i = 0; i < text->len; i++)
        lab_fact("%02x", text->bytes[i]);
    for (size_t i = 0; i < count; i++)
        lab_fact("%zu %u", sites[i].offset, sites[i].len);
}

static void must(bool is_read)
{
    if (!is_read)
        exit(1);
}

size_t shared_read(struct text *text, uint8_t *bytes, struct site *sites)
{
    size_t count;

    must(scanf("%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%zu%zu",
               &text->start, &text->pads_start, &text->hole_start, &text->hole_end,
               &text->pads_end, &text->len, &count) == 7);
    must(text->len <= TEXT_MAX && count <= SITES_MAX);
    text->bytes = bytes;
    for (size_t i = 0; i < text->len; i++)
        must(scanf("%2" SCNx8, &bytes[i]) == 1);
    for (size_t i = 0; i < count; i++) {
        sites[i] = (struct site){ 0 };
        must(scanf("%zu%u", &sites[i].offset, &sites[i].len) == 2);
    }
    return count;
}

void plan_tell(const struct site *s)
{
    char text[2 * sizeof(s->jump) + 1];

    for (unsigned i = 0; i < sizeof(s->jump); i++)
        snprintf(text + 2 * i, 3, "%02x", s->jump[i]);
    lab_fact("%zu: %u %s %" PRIx64, s->offset, s->jump_len, text, s->pad);
}

void plan_read(struct site *s)
{
    size_t offset;

    must(scanf("%zu:%u", &offset, &s->jump_len) == 2 && offset == s->offset);
    for (unsigned i = 0; i < sizeof(s->jump); i++)
        must(scanf("%2" SCNx8, &s->jump[i]) == 1);
    must(scanf("%" SCNx64, &s->pad) == 1);
}

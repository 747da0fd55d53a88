/* pun.c - plans jumps from the last site to the first. The bytes behind an instruction
 * may be a part of its jump, so they have to be final before the jump is planned.
 */
#include "pun.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define JMP 0xe9
#define JMP_LEN 5
#define PREFIXES_MAX 10
#define TRIES 64 /* the number of pads that are tried in a range of displacements */

/* A prefix that a jump ignores. REX prefixes are not used here: one would have
 * to be last.
 */
#define PREFIX 0x3e

static uint8_t *now; /* the text with the plans that were made so far */
static uint64_t *pads;
static size_t pad_count;

static bool is_free(const struct text *text, uint64_t pad)
{
    uint64_t end = pad + PAD_LEN;

    if (pad < text->pads_start || end > text->pads_end ||
        (end > text->hole_start && pad < text->hole_end))
        return false;
    for (size_t i = 0; i < pad_count; i++)
        if (pad < pads[i] + PAD_LEN && pads[i] < end)
            return false;
    return true;
}

static void take(const struct text *text, struct site *s, unsigned prefixes, uint64_t pad)
{
    int32_t disp = (int32_t)(pad - (text->start + s->offset + prefixes + JMP_LEN));
    unsigned used = prefixes + JMP_LEN;

    memset(s->jump, PREFIX, prefixes);
    s->jump[prefixes] = JMP;
    memcpy(s->jump + prefixes + 1, &disp, sizeof(disp));
    s->jump_len = used < s->len ? used : s->len;
    s->pad = pad;
    memcpy(now + s->offset, s->jump, s->jump_len);
    pads[pad_count++] = pad;
}

/* plan_with - plan a jump with @prefixes prefixes in front of its opcode. The low
 * bytes of its displacement that lie in the instruction can be chosen. The others
 * lie behind it.
 */
static bool plan_with(const struct text *text, struct site *s, unsigned prefixes)
{
    unsigned room = s->len - prefixes - 1, pinned = room < 4 ? 4 - room : 0;
    uint64_t next = text->start + s->offset + prefixes + JMP_LEN;
    uint32_t disp = 0, choices = pinned == 4 ? 1 : UINT32_C(1) << 8 * (4 - pinned) % 32;
    uint32_t step;

    if (!pinned) {
        next = text->hole_end; /* any pad can be reached: take the next free one */
        choices = UINT32_C(1) << 31;
    }
    memcpy((uint8_t *)&disp + (4 - pinned), now + s->offset + s->len, pinned);
    step = choices / TRIES > PAD_LEN ? PAD_LEN : 1;
    for (uint32_t try = 0; try < choices && try < 4 * TRIES * step; try += step) {
        uint64_t pad = next + (uint64_t)(int64_t)(int32_t)(disp + try);

        if (!pinned)
            pad = text->hole_end + (pad_count + try) * PAD_LEN;
        if (is_free(text, pad)) {
            take(text, s, prefixes, pad);
            return true;
        }
    }
    return false;
}

void plan(const struct text *text, struct site *sites, size_t count)
{
    now = malloc(text->len);
    pads = calloc(count, sizeof(*pads));
    pad_count = 0;
    memcpy(now, text->bytes, text->len);
    for (size_t i = count; i-- > 0;)
        for (unsigned k = 0; k < sites[i].len && k <= PREFIXES_MAX; k++)
            if (plan_with(text, &sites[i], k))
                break;
    free(now);
    free(pads);
}

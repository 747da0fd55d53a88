/* static_key.c - switches static keys: makes jumps of NOPs, and NOPs of jumps.
 *
 * Each place is exchanged as a whole, five bytes at once (xmc_batch(): int3 first). A CPU
 * that comes to a place during the change executes either the NOP or the jump. At two
 * places of the same key it may execute a NOP and a jump.
 */
#include "probes/marker/static_key.h"

#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/wait_check.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/insn/encode.h"
#include "probes/marker/marker.h"
#include "probes/xmc/xmc.h"

#include <stdlib.h>
#include <string.h>

/* linker.ld */
extern const struct static_key_insn static_keys_start[], static_keys_end[];

static struct mutex lock = MUTEX_INIT(lock);
static struct static_key_part *loaded; /* [lock] those of modules, without the image */

/* The places that change, and the bytes that they get. */
struct key_batch {
    const struct static_key *key; /* NULL: all keys that are on */
    bool on;
    size_t count;
    struct xmc_change *changes; /* with room for all places that may change */
    uint8_t (*code)[INSN_JMP32_LEN];
};

static const uint8_t nop[INSN_JMP32_LEN] = { 0x0f, 0x1f, 0x44, 0, 0 };

/* jumps - is @i a jump now? This looks at the program's own bytes: in the text a probe
 * may have written over them.
 */
static bool jumps(const struct static_key_insn *i)
{
    uint8_t bytes[INSN_JMP32_LEN];

    return !recover_bytes(bytes, i->insn, sizeof(bytes)) && bytes[0] != nop[0];
}

static void add_place(struct key_batch *b, const struct static_key_insn *i)
{
    uint8_t *code;

    if ((b->key ? i->key != b->key : !i->key->is_on) || jumps(i) == b->on)
        return;
    code = b->code[b->count];
    if (b->on)
        insn_encode_jmp32(code, i->insn, i->target);
    else
        memcpy(code, nop, sizeof(nop));
    b->changes[b->count++] = (struct xmc_change){ i->insn, code, INSN_JMP32_LEN };
}

static void add_places(struct key_batch *b, const struct static_key_insn *insns,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_place(b, &insns[i]);
}

/* add_all_places - add the places of @only; NULL: the places of all text. */
static void add_all_places(struct key_batch *b, const struct static_key_part *only)
{
    plat_lock(PLAT_PROBES);
    if (only) {
        add_places(b, only->insns, only->count);
    } else {
        add_places(b, static_keys_start, (size_t)(static_keys_end - static_keys_start));
        for (const struct static_key_part *p = loaded; p; p = p->next)
            add_places(b, p->insns, p->count);
    }
    plat_unlock(PLAT_PROBES);
}

/* exchange_places - exchange the places of @only, or of all text. How many must change may
 * be another number at each look, because xmc_batch() exchanges any instruction.
 */
static int exchange_places(struct key_batch *b, const struct static_key_part *only)
{
    size_t room = only ? only->count : (size_t)(static_keys_end - static_keys_start);
    struct probe_reject why;
    int err = -ENOMEM;

    for (const struct static_key_part *p = loaded; p && !only; p = p->next)
        room += p->count;
    b->changes = plat_alloc(room * sizeof(*b->changes));
    b->code = plat_alloc(room * sizeof(*b->code));
    if (b->changes && b->code) {
        add_all_places(b, only);
        qsort(b->changes, b->count, sizeof(*b->changes), compare_addresses);
        err = xmc_batch(b->changes, b->count, &why);
    }
    plat_free(b->changes);
    plat_free(b->code);
    return err;
}

int static_key_switch(struct static_key *key, bool on)
{
    struct key_batch b = { .key = key, .on = on };
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    mutex_lock(&lock);
    err = exchange_places(&b, NULL);
    if (!err)
        key->is_on = on;
    mutex_unlock(&lock);
    return err;
}

static size_t count_places(const struct static_key *key,
                           const struct static_key_insn *insns, size_t count)
{
    size_t places = 0;

    for (size_t i = 0; i < count; i++)
        places += insns[i].key == key;
    return places;
}

size_t static_key_places(const struct static_key *key)
{
    size_t places;

    mutex_lock(&lock);
    places = count_places(key, static_keys_start,
                          (size_t)(static_keys_end - static_keys_start));
    for (const struct static_key_part *p = loaded; p; p = p->next)
        places += count_places(key, p->insns, p->count);
    mutex_unlock(&lock);
    return places;
}

int static_keys_come(struct static_key_part *part)
{
    struct key_batch b = { .on = true };
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    mutex_lock(&lock);
    err = exchange_places(&b, part);
    if (!err) {
        part->next = loaded;
        loaded = part;
    }
    mutex_unlock(&lock);
    return err;
}

/* The jumps of @part become NOPs, so that the planner of regions forgets where these
 * jumps led. If there is no memory for that, the planner keeps old targets.
 */
void static_keys_go(struct static_key_part *part)
{
    struct static_key_part **link = &loaded;
    struct key_batch b = { .on = false };

    BUG_ON(wait_check(__func__)); /* module_unload() has been refused */
    mutex_lock(&lock);
    exchange_places(&b, part);
    while (*link && *link != part)
        link = &(*link)->next;
    if (*link)
        *link = part->next;
    mutex_unlock(&lock);
}

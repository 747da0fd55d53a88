/* gdb_frame.c - reads the frames of a trace from the rings, in the order of time.
 *
 * While all CPUs stand the rings do not change. So a walk through the frames may pause,
 * and go on when the debugger sends the next packet. After the kernel has run, a walk
 * begins anew. The records of a frame may have records of other CPUs between them. So a
 * frame of several records is put together in memory of its CPU (struct assembly). Its
 * place in the order is that of its last record.
 */
#include "probes/gdb/gdb_frame.h"

#include "kernel/base/compiler.h"
#include "kernel/mm/heap.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_regs.h"
#include "probes/gdb/gdb_tracepoint.h"

#include <string.h>

#define NONE UINT32_MAX
#define CONSTANTS_MAX 8

struct gdb_frame {
    struct gdb_record record;
    const uint8_t *blocks; /* record.len bytes */
};

/* A frame of which not all records have been read yet. */
struct assembly {
    bool is_open;
    uint32_t id, len;
    uint8_t blocks[GDB_FRAME_MAX + 256];
};

static struct assembly *assemblies; /* one for each ring */
static size_t assemblies_len;       /* bytes */
static bool is_looking;
static uint32_t index; /* of the next frame of the walk */
static uint64_t older; /* bytes of frames that the walk skips first */

static struct {
    uintptr_t start, end;
} constants[CONSTANTS_MAX]; /* memory that is never written */
static size_t constant_count;

static bool is_selected;
static uint32_t selected_index;
static struct gdb_frame selected;
static uint8_t selected_blocks[GDB_FRAME_MAX + 256];

INIT bool gdb_frame_init(unsigned rings)
{
    assemblies = kzalloc(rings * sizeof(*assemblies));
    assemblies_len = assemblies ? rings * sizeof(*assemblies) : 0;
    return assemblies;
}

/* ---- the frames, one after the other ---- */

static void frame_rewind(void)
{
    gdb_rings_begin(&gdb_frames, MERGE_LOOK);
    memset(assemblies, 0, assemblies_len);
    is_looking = true;
    index = 0;
    older = 0;
}

/* frame_append - add the record in @out to its frame. Return: true: the frame is
 * complete, and @out is the whole frame.
 */
static bool frame_append(struct assembly *a, struct gdb_frame *out)
{
    const struct gdb_record *record = &out->record;

    if (record->begins) {
        a->is_open = true;
        a->id = record->id;
        a->len = 0;
    }
    if (!a->is_open || a->id != record->id || a->len + record->len > sizeof(a->blocks))
        return false;
    memcpy(a->blocks + a->len, out->blocks, record->len);
    a->len += record->len;
    a->is_open = !record->ends;
    out->record.len = a->len;
    out->blocks = a->blocks;
    return record->ends;
}

/* next_there - read the next of all frames in the rings. Return: false: there are no
 * more.
 */
static bool next_there(struct gdb_frame *out)
{
    struct merged record;

    while (is_looking && merge_next(&gdb_frames.merge, &record)) {
        memcpy(&out->record, record.event.data, sizeof(out->record));
        out->blocks = (const uint8_t *)record.event.data + sizeof(out->record);
        if ((out->record.begins && out->record.ends) ||
            frame_append(&assemblies[record.ring], out))
            return true;
    }
    is_looking = false;
    return false;
}

static uint64_t frame_bytes(const struct gdb_frame *frame)
{
    return sizeof(frame->record) + frame->record.len;
}

/* frame_begin - begin a walk. A ring consists of whole pages. So if the debugger wants a
 * small circular buffer, the rings hold older frames too, and the walk skips these.
 */
static void frame_begin(void)
{
    struct gdb_frame frame;
    uint64_t bytes = 0;

    frame_rewind();
    if (!gdb_trace_state.keeps)
        return;
    while (next_there(&frame))
        bytes += frame_bytes(&frame);
    frame_rewind();
    if (bytes > gdb_trace_state.keeps)
        older = bytes - gdb_trace_state.keeps;
}

/* frame_next - read the next frame that is shown. Return: false: there are no more. */
static bool frame_next(struct gdb_frame *out)
{
    while (next_there(out)) {
        uint64_t bytes = frame_bytes(out);

        if (!older) {
            index++;
            return true;
        }
        older = older > bytes ? older - bytes : 0;
    }
    return false;
}

COLD uint32_t gdb_frame_count(void)
{
    struct gdb_frame frame;

    for (frame_begin(); frame_next(&frame);)
        continue;
    return index;
}

/* ---- blocks ---- */

static size_t frame_block_len(const uint8_t *block)
{
    uint16_t len;

    switch (*block) {
    case 'R':
        return 1 + sizeof(struct pt_regs);
    case 'V':
        return GDB_BLOCK_V;
    default:
        memcpy(&len, block + 9, sizeof(len));
        return GDB_BLOCK_M + len;
    }
}

/* block_next - return the block behind @block; with NULL the first one. Return: NULL:
 * there are no more.
 */
static const uint8_t *block_next(const struct gdb_frame *frame, const uint8_t *block)
{
    block = block ? block + frame_block_len(block) : frame->blocks;
    return block < frame->blocks + frame->record.len ? block : NULL;
}

static uint64_t number_at(const uint8_t *at, size_t len)
{
    uint64_t number = 0;

    memcpy(&number, at, len);
    return number;
}

/* ---- the frame that is selected ---- */

bool gdb_frame_is_selected(void)
{
    return is_selected;
}

void gdb_frame_forget(void)
{
    is_selected = false;
    is_looking = false;
}

const struct pt_regs *gdb_frame_regs(void)
{
    static struct pt_regs regs;

    for (const uint8_t *b = NULL; (b = block_next(&selected, b));) {
        if (*b != 'R')
            continue;
        memcpy(&regs, b + 1, sizeof(regs));
        return &regs;
    }
    return NULL;
}

uintptr_t gdb_frame_ip(void)
{
    return selected.record.addr;
}

/* read_block - read from the first block that has @addr. Return: how many bytes. */
COLD static size_t read_block(uint8_t *out, uintptr_t addr, size_t len)
{
    for (const uint8_t *b = NULL; (b = block_next(&selected, b));) {
        uint64_t start = number_at(b + 1, 8), has;

        if (*b != 'M')
            continue;
        has = number_at(b + 9, 2);
        if (addr - start >= has)
            continue;
        has -= addr - start;
        has = has < len ? has : len;
        memcpy(out, b + GDB_BLOCK_M + (addr - start), has);
        return has;
    }
    return 0;
}

COLD bool gdb_frame_constant_add(uintptr_t start, uintptr_t end)
{
    if (constant_count == CONSTANTS_MAX)
        return false;
    constants[constant_count].start = start;
    constants[constant_count++].end = end;
    return true;
}

void gdb_frame_constants_clear(void)
{
    constant_count = 0;
}

COLD static bool is_constant(uintptr_t addr, size_t len)
{
    for (size_t i = 0; i < constant_count; i++)
        if (addr >= constants[i].start && addr + len <= constants[i].end)
            return true;
    return false;
}

COLD size_t gdb_frame_read(void *out, uintptr_t addr, size_t len)
{
    size_t done = 0;

    while (done < len) {
        size_t n = read_block((uint8_t *)out + done, addr + done, len - done);

        if (!n)
            break;
        done += n;
    }
    if (!done && is_constant(addr, len))
        return gdb_memory_read(out, addr, len);
    return done;
}

/* `$n += 1` collects $n before and after the change. So the last value in the frame is
 * the value at the end of the frame.
 */
COLD bool gdb_frame_variable(unsigned number, int64_t *value)
{
    bool found = false;

    for (const uint8_t *b = NULL; (b = block_next(&selected, b));) {
        if (*b != 'V' || number_at(b + 1, 4) != number)
            continue;
        *value = (int64_t)number_at(b + 5, 8);
        found = true;
    }
    return found;
}

COLD void gdb_frame_info(void (*add)(void *arg, bool is_memory, uint64_t start,
                                     uint64_t len),
                         void *arg)
{
    for (const uint8_t *b = NULL; (b = block_next(&selected, b));) {
        if (*b == 'M')
            add(arg, true, number_at(b + 1, 8), number_at(b + 9, 2));
        else if (*b == 'V')
            add(arg, false, number_at(b + 1, 4), 0);
    }
}

/* ---- QTFrame ---- */

struct wanted_frame {
    enum { BY_INDEX, BY_PC, BY_NUMBER, INSIDE, OUTSIDE } how;
    uint64_t from, to;
};

COLD static bool take_wanted(struct gdb_request *r, struct wanted_frame *w)
{
    bool has_end = false;

    w->how = BY_INDEX;
    if (gdb_take_word(&r->at, "pc:"))
        w->how = BY_PC;
    else if (gdb_take_word(&r->at, "tdp:"))
        w->how = BY_NUMBER;
    else if (gdb_take_word(&r->at, "range:"))
        w->how = INSIDE;
    else if (gdb_take_word(&r->at, "outside:"))
        w->how = OUTSIDE;
    if (!gdb_take_number(&r->at, &w->from))
        return false;
    if (w->how == INSIDE || w->how == OUTSIDE)
        has_end = gdb_take_char(&r->at, ':') && gdb_take_number(&r->at, &w->to);
    else
        return true;
    return has_end;
}

static bool is_it(const struct gdb_frame *frame, const struct wanted_frame *w)
{
    uintptr_t addr = frame->record.addr;
    bool inside = addr >= w->from && addr <= w->to;

    switch (w->how) {
    case BY_INDEX:
        return index - 1 == w->from;
    case BY_PC:
        return addr == w->from;
    case BY_NUMBER:
        return frame->record.number == w->from;
    case INSIDE:
        return inside;
    default:
        return !inside;
    }
}

COLD static void select_frame(const struct gdb_frame *frame)
{
    selected = *frame;
    memcpy(selected_blocks, frame->blocks, frame->record.len);
    selected.blocks = selected_blocks;
    selected_index = index - 1;
    is_selected = true;
}

/* A search begins behind the selected frame. A search for the number of a frame
 * looks at all frames.
 */
COLD void gdb_frame_find(struct gdb_request *r)
{
    uint32_t from;
    struct wanted_frame w;
    struct gdb_frame frame;

    if (!take_wanted(r, &w)) {
        gdb_error(r, "QTFrame wants a number, pc, tdp, range or outside");
        return;
    }
    if (w.how == BY_INDEX && (uint32_t)w.from == NONE)
        is_selected = false;
    from = w.how == BY_INDEX ? (uint32_t)w.from : is_selected ? selected_index + 1 : 0;
    if (!is_looking || index > from)
        frame_begin();
    while (from != NONE && frame_next(&frame)) {
        if (index - 1 < from || !is_it(&frame, &w))
            continue;
        select_frame(&frame);
        gdb_put_text(r->out, "F");
        gdb_put_number(r->out, selected_index);
        gdb_put_text(r->out, "T");
        gdb_put_number(r->out, frame.record.number);
        return;
    }
    gdb_put_text(r->out, "F-1");
}

/* ---- qTBuffer ---- */

/* A frame as it is in gdb's file: u16 number, u32 length, blocks. gdb takes a block of
 * registers to be as long as an answer to `g`.
 */
static uint8_t image[2 * GDB_FRAME_MAX];
static size_t image_len;
static uint64_t image_at; /* where the image begins in the file */

COLD static size_t put_block(uint8_t *to, const uint8_t *block)
{
    struct pt_regs regs;

    if (*block != 'R') {
        memcpy(to, block, frame_block_len(block));
        return frame_block_len(block);
    }
    memcpy(&regs, block + 1, sizeof(regs));
    *to = 'R';
    return 1 + gdb_regs_block(to + 1, &regs);
}

COLD static void make_image(const struct gdb_frame *frame)
{
    uint32_t len = 0;

    for (const uint8_t *b = NULL; (b = block_next(frame, b));)
        if (6 + len + GDB_REGS_BLOCK + frame_block_len(b) < sizeof(image))
            len += (uint32_t)put_block(image + 6 + len, b);
    memcpy(image, &frame->record.number, 2);
    memcpy(image + 2, &len, 4);
    image_len = 6 + len;
}

/* seek - make the image of the frame that has byte @at of the file. Return: false: there
 * is no such byte.
 */
COLD static bool seek(uint64_t at)
{
    struct gdb_frame frame;

    if (!is_looking || at < image_at || !image_len) {
        frame_begin();
        image_at = image_len = 0;
    }
    while (at >= image_at + image_len) {
        image_at += image_len;
        image_len = 0;
        if (!frame_next(&frame))
            return false;
        make_image(&frame);
    }
    return true;
}

COLD void gdb_frame_upload(struct gdb_request *r)
{
    uint64_t at, len;

    if (!gdb_take_number(&r->at, &at) || !gdb_take_char(&r->at, ',') ||
        !gdb_take_number(&r->at, &len)) {
        gdb_error(r, "no offset or length");
        return;
    }
    if (len > gdb_out_room(r->out) / 2)
        len = gdb_out_room(r->out) / 2;
    while (len && seek(at)) {
        size_t n = image_at + image_len - at;

        n = n < len ? n : len;
        gdb_put_hex(r->out, image + (at - image_at), n);
        at += n;
        len -= n;
    }
    if (gdb_is_empty(r->out))
        gdb_put_text(r->out, "l");
}

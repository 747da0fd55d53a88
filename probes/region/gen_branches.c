/* gen_branches.c - build tool: find where the code of one section leads. gen_targets.py
 * reads the output.
 *
 *     gen_branches FILE ADDR <extents
 *
 * FILE is the content of the section, ADDR the address at which it will run. Each line of
 * the input is a range of addresses to decode: "START END". All numbers are hexadecimal.
 * The output is one line for each of these facts:
 *
 *     branch AT TO   at AT, a direct branch or call to TO, inside the section
 *     refer AT TO    at AT, a rip-relative operand, at the address TO inside the section
 *     jump AT        at AT, an indirect jump
 *     stuck AT END   the bytes at AT are no instruction; from there up to END an
 *                    instruction may begin at any byte
 *
 * The tool also decodes the code that branches lead to. So it finds code behind data, if
 * any branch leads to that code.
 */
#include "probes/insn/insn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct section {
    uint8_t *bytes;
    size_t size;
    uintptr_t addr;
    bool *seen;        /* byte i: decoding was tried there */
    size_t *pending;   /* targets of branches that must still be decoded, as offsets */
    bool *was_pending; /* byte i: it was in pending[], and is not added again */
    size_t pending_count;
};

static bool section_contains(const struct section *s, uintptr_t addr)
{
    return addr - s->addr < s->size;
}

static void pend(struct section *s, uintptr_t addr)
{
    size_t off = addr - s->addr;

    if (s->was_pending[off])
        return;
    s->was_pending[off] = true;
    s->pending[s->pending_count++] = off;
}

static void note(struct section *s, const struct insn *insn)
{
    if (insn_has_target(insn) && section_contains(s, insn->target)) {
        printf("branch %" PRIxPTR " %" PRIxPTR "\n", insn->addr, insn->target);
        pend(s, insn->target);
    }
    if (insn->rip_relative && section_contains(s, insn->mem))
        printf("refer %" PRIxPTR " %" PRIxPTR "\n", insn->addr, insn->mem);
    if (insn->kind == INSN_JMP_REG || insn->kind == INSN_JMP_MEM)
        printf("jump %" PRIxPTR "\n", insn->addr);
}

/* decode_off - decode the instruction at offset @off. A near branch with a 66 prefix
 * counts as no instruction, because processors disagree about its target.
 * Return: false: there is no instruction.
 */
static bool decode_off(struct section *s, size_t off, size_t end, struct insn *insn)
{
    if (insn_decode(insn, s->bytes + off, end - off, s->addr + off))
        return false;
    return !(insn_is_near_branch(insn) && insn->opsize66);
}

/* decode_at_each_byte - the bytes at @stuck are no instruction, so decode at each byte
 * behind. Stop at @end, or where an instruction was decoded before.
 */
static void decode_at_each_byte(struct section *s, size_t stuck, size_t end)
{
    struct insn insn;
    size_t off;

    for (off = stuck + 1; off < end && !s->seen[off]; off++)
        if (decode_off(s, off, end, &insn))
            note(s, &insn);
    printf("stuck %" PRIxPTR " %" PRIxPTR "\n", s->addr + stuck, s->addr + off);
}

/* follow_section - decode one instruction after the other from @off on, until @end, or
 * until one that was decoded before.
 */
static void follow_section(struct section *s, size_t off, size_t end)
{
    struct insn insn;

    while (off < end && !s->seen[off]) {
        s->seen[off] = true;
        if (!decode_off(s, off, end, &insn)) {
            decode_at_each_byte(s, off, end);
            return;
        }
        note(s, &insn);
        off += insn.len;
    }
}

static void follow_branches(struct section *s)
{
    while (s->pending_count)
        follow_section(s, s->pending[--s->pending_count], s->size);
}

static void *room(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    if (!p) {
        fputs("gen_branches: no memory\n", stderr);
        exit(1);
    }
    return p;
}

static long file_len(FILE *file)
{
    return file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
}

static void section_read(struct section *s, const char *path)
{
    FILE *file = fopen(path, "rb");
    long len = file_len(file);

    s->size = len > 0 ? (size_t)len : 0;
    s->bytes = room(s->size, 1);
    s->seen = room(s->size, sizeof(bool));
    s->was_pending = room(s->size, sizeof(bool));
    s->pending = room(s->size, sizeof(size_t));
    if (len < 0 || fseek(file, 0, SEEK_SET) ||
        fread(s->bytes, 1, s->size, file) != s->size) {
        perror(path);
        exit(1);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    struct section s = { 0 };
    uintptr_t start, end;

    if (argc != 3) {
        fputs("usage: gen_branches FILE ADDR <extents\n", stderr);
        return 1;
    }
    section_read(&s, argv[1]);
    s.addr = strtoul(argv[2], NULL, 16);
    while (scanf("%" SCNxPTR " %" SCNxPTR, &start, &end) == 2)
        if (section_contains(&s, start) && end - s.addr <= s.size)
            follow_section(&s, start - s.addr, end - s.addr);
    follow_branches(&s);
    return 0;
}

/* image.c - reads the text of an ELF file, and divides it into instructions. */
#include "tests/pun/image.h"

#include "probes/insn/insn.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKED_AT UINT64_C(0xffffffff80200000)
#define FILLED_BEHIND 64 /* readable bytes behind the text */

/* The file, while it is being read. */
struct elf {
    struct image *image;
    const uint8_t *bytes;
    size_t len;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    const char *names;
    const Elf64_Shdr *text;
};

static const Elf64_Shdr *section_find(const struct elf *e, const char *name)
{
    for (unsigned i = 0; i < e->header->e_shnum; i++) {
        if (strcmp(e->names + e->sections[i].sh_name, name) == 0)
            return &e->sections[i];
    }
    return NULL;
}

/* ---- functions ---- */

static bool is_probed(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_INT3:
    case INSN_INT1:
    case INSN_UD:
    case INSN_IRET:
    case INSN_SYSRET:
    case INSN_SYSEXIT:
    case INSN_SWAPGS:
        return false;
    default:
        return true;
    }
}

static bool insn_note(struct image *image, size_t off, size_t end, size_t *next)
{
    struct insn insn;

    if (insn_decode(&insn, image->bytes + off, end - off, image->base + off))
        return false;
    *next = off + insn.len;
    if (image->flags[off] & IMAGE_BOUNDARY)
        return true;
    image->flags[off] |= IMAGE_BOUNDARY | (is_probed(&insn) ? IMAGE_PROBED : 0);
    image->lens[off] = insn.len;
    return true;
}

/* function_note - note the instructions of a function. @addr: its address in the file */
static void function_note(struct elf *e, uint64_t addr, uint64_t len)
{
    struct image *image = e->image;
    size_t off = addr - e->text->sh_addr, end = off + len, next = 0;

    if (addr < e->text->sh_addr || end > image->len || end <= off)
        return;
    for (size_t i = off; i < end; i++)
        image->flags[i] &= (uint8_t)~IMAGE_PADDING;
    for (; off < end && insn_note(image, off, end, &next); off = next)
        ;
}

static size_t symbols_note(struct elf *e)
{
    const Elf64_Shdr *table = section_find(e, ".symtab");
    const Elf64_Sym *syms;
    size_t count, functions = 0;

    if (!table)
        return 0;
    syms = (const Elf64_Sym *)(e->bytes + table->sh_offset);
    count = table->sh_size / sizeof(*syms);
    for (size_t i = 0; i < count; i++) {
        if (ELF64_ST_TYPE(syms[i].st_info) != STT_FUNC || syms[i].st_size == 0)
            continue;
        function_note(e, syms[i].st_value, syms[i].st_size);
        functions++;
    }
    return functions;
}

/* ---- .eh_frame ---- */

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t n;

    memcpy(&n, p, sizeof(n));
    return n;
}

/* fdes_note - note the functions of all FDEs. An entry begins with its length, and then a
 * word that is 0 for a CIE. Addresses are 32 bits, relative to their own place, as
 * compilers for this processor write them.
 */
static size_t fdes_note(struct elf *e)
{
    const Elf64_Shdr *frames = section_find(e, ".eh_frame");
    const uint8_t *p, *start, *end;
    size_t functions = 0;
    uint32_t len;

    if (!frames || frames->sh_type == SHT_NOBITS)
        return 0;
    p = start = e->bytes + frames->sh_offset;
    end = p + frames->sh_size;
    for (; p + 16 <= end && (len = u32_at(p)) != 0 && len != UINT32_MAX; p += len + 4) {
        uint64_t at = frames->sh_addr + (uint64_t)(p + 8 - start);

        if (u32_at(p + 4) == 0)
            continue;
        function_note(e, at + (uint64_t)(int64_t)(int32_t)u32_at(p + 8), u32_at(p + 12));
        functions++;
    }
    return functions;
}

/* ---- no symbols and no .eh_frame ---- */

/* padding_len - return how many bytes of padding, as between functions, begin at @p. */
static size_t padding_len(const uint8_t *p, size_t len)
{
    size_t i = 0;

    while (i < len && p[i] == 0xcc)
        i++;
    return i;
}

static void sweep(struct elf *e)
{
    struct image *image = e->image;
    size_t next;

    for (size_t off = 0; off < image->len; off = next) {
        next = off + padding_len(image->bytes + off, image->len - off);
        if (next > off)
            continue;
        image->flags[off] &= (uint8_t)~IMAGE_PADDING;
        if (!insn_note(image, off, image->len, &next))
            next = off + 1;
        for (size_t i = off; i < next; i++)
            image->flags[i] &= (uint8_t)~IMAGE_PADDING;
    }
}

/* ---- instructions that our kernel never probes ---- */

static void range_spare(struct elf *e, uint64_t start, uint64_t end)
{
    for (uint64_t a = start; a < end; a++) {
        if (a >= e->text->sh_addr && a - e->text->sh_addr < e->image->len)
            e->image->flags[a - e->text->sh_addr] &= (uint8_t)~IMAGE_PROBED;
    }
}

static const Elf64_Sym *symbol_find(const struct elf *e, const char *name, uint64_t addr)
{
    const Elf64_Shdr *table = section_find(e, ".symtab");
    const Elf64_Sym *syms = (const Elf64_Sym *)(e->bytes + table->sh_offset);
    const char *names = (const char *)e->bytes + e->sections[table->sh_link].sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(*syms); i++) {
        if (name && strcmp(names + syms[i].st_name, name) == 0)
            return &syms[i];
        if (!name && syms[i].st_value == addr && syms[i].st_size &&
            ELF64_ST_TYPE(syms[i].st_info) == STT_FUNC)
            return &syms[i];
    }
    return NULL;
}

/* content - return the bytes of the file that are at @addr in memory; NULL: there are
 * none.
 */
static const uint8_t *content(const struct elf *e, uint64_t addr)
{
    for (unsigned i = 0; i < e->header->e_shnum; i++) {
        const Elf64_Shdr *s = &e->sections[i];

        if (s->sh_flags & SHF_ALLOC && addr >= s->sh_addr &&
            addr - s->sh_addr < s->sh_size)
            return e->bytes + s->sh_offset + (addr - s->sh_addr);
    }
    return NULL;
}

static void marked_spare(struct elf *e)
{
    const Elf64_Sym *start = symbol_find(e, "nokprobe_start", 0);
    const Elf64_Sym *end = symbol_find(e, "nokprobe_end", 0);

    for (uint64_t at = start->st_value; at < end->st_value; at += 8) {
        uint64_t addr;
        const Elf64_Sym *sym;

        memcpy(&addr, content(e, at), sizeof(addr));
        sym = symbol_find(e, NULL, addr);
        if (sym)
            range_spare(e, sym->st_value, sym->st_value + sym->st_size);
    }
}

static void ours_spare(struct elf *e)
{
    const Elf64_Sym *start, *end;

    if (!section_find(e, ".symtab") || !symbol_find(e, "nokprobe_start", 0))
        return;
    marked_spare(e);
    start = symbol_find(e, "entry_text_start", 0);
    end = symbol_find(e, "entry_text_end", 0);
    if (start && end)
        range_spare(e, start->st_value, end->st_value);
}

/* ---- the file ---- */

static bool file_open(struct elf *e, const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    void *p;

    if (fd < 0 || fstat(fd, &st))
        return false;
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return false;
    e->bytes = p;
    e->len = (size_t)st.st_size;
    e->header = p;
    e->sections = (const Elf64_Shdr *)(e->bytes + e->header->e_shoff);
    e->names = (const char *)e->bytes + e->sections[e->header->e_shstrndx].sh_offset;
    e->text = section_find(e, ".text");
    return e->text != NULL;
}

static uint64_t memory_end(const struct elf *e)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < e->header->e_shnum; i++) {
        const Elf64_Shdr *s = &e->sections[i];

        if (s->sh_flags & SHF_ALLOC && s->sh_addr >= e->text->sh_addr &&
            s->sh_addr + s->sh_size > end)
            end = s->sh_addr + s->sh_size;
    }
    return end;
}

static void text_copy(struct image *image, const struct elf *e)
{
    image->len = e->text->sh_size;
    image->base = LINKED_AT + e->text->sh_addr % 4096;
    image->end = image->base + (memory_end(e) - e->text->sh_addr);
    image->bytes = calloc(image->len + FILLED_BEHIND, 1);
    image->lens = calloc(image->len + FILLED_BEHIND, 1);
    image->flags = calloc(image->len + FILLED_BEHIND, 1);
    if (!image->bytes || !image->lens || !image->flags)
        abort();
    memcpy(image->bytes, e->bytes + e->text->sh_offset, image->len);
    memset(image->bytes + image->len, 0xcc, FILLED_BEHIND);
    memset(image->flags, IMAGE_PADDING, image->len);
}

bool image_load(struct image *image, const char *path)
{
    struct elf e = { .image = image };

    *image = (struct image){ .path = path };
    if (!file_open(&e, path)) {
        printf("# %s: no ELF file with a text that can be read\n", path);
        return false;
    }
    text_copy(image, &e);
    if (symbols_note(&e) == 0 && fdes_note(&e) == 0)
        sweep(&e);
    ours_spare(&e);
    for (size_t i = 0; i < image->len; i++)
        image->probed += (image->flags[i] & IMAGE_PROBED) != 0;
    munmap((void *)(uintptr_t)e.bytes, e.len);
    return true;
}

void image_free(struct image *image)
{
    free(image->bytes);
    free(image->lens);
    free(image->flags);
}

/* explain.c - a table of known differences, and functions that find the row for a
 * difference.
 */
#include "tests/insn/explain.h"

#include <stdio.h>
#include <string.h>

enum row {
    NEWER,
    PREFIX,
    VECTOR_FIELD,
    EXTENSION,
    KNC,
    FWAIT,
    LONE_PREFIX,
    BAD,
    REFUSED,
    ROW_COUNT,
};

/* No program needs one of these. If probes/insn decodes too much, the processor raises
 * #UD there. The instructions that it refuses exist on no processor that runs 64-bit
 * kernels.
 */
static struct {
    const char *why;
    unsigned long count;
} rows[ROW_COUNT] = {
    [NEWER] = { "decoded: newer than Zydis 4.0", 0 },
    [PREFIX] = { "decoded: would exist without that prefix (66 f2 f3 lock)", 0 },
    [VECTOR_FIELD] = { "decoded: would exist with other VEX/EVEX fields or form", 0 },
    [EXTENSION] = { "decoded: would exist with another modrm or rex", 0 },
    [KNC] = { "refused: Knights Corner coprocessor only", 0 },
    [FWAIT] = { "objdump shows fwait and the next instruction as one", 0 },
    [LONE_PREFIX] = { "objdump shows a prefix as an instruction of its own", 0 },
    [BAD] = { "objdump shows what it does not know byte by byte", 0 },
    [REFUSED] = { "objdump shows what Zydis refuses as well: data, not code", 0 },
};

static bool explained(enum row row)
{
    rows[row].count++;
    return true;
}

void explain_report(void)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        if (rows[i].count)
            printf("# explained %lu: %s\n", rows[i].count, rows[i].why);
    }
}

/* Ranges of opcodes that are newer than Zydis 4.0: the first and the last opcode, and a
 * bit for each prefix that they exist with.
 */
static const struct {
    uint8_t encoding, map, first, last, prefixes;
} newer[] = {
    { INSN_LEGACY, 2, 0xfc, 0xfc, 0xf }, /* aadd aand aor axor */
    { INSN_VEX, 2, 0x50, 0x51, 0xd },    /* avx-vnni-int8 */
    { INSN_VEX, 2, 0x5c, 0x5c, 0x8 },    /* tdpfp16ps */
    { INSN_VEX, 2, 0x6c, 0x6c, 0x3 },    /* amx-complex */
    { INSN_VEX, 2, 0x72, 0x72, 0x4 },    /* avx-ne-convert */
    { INSN_VEX, 2, 0xb0, 0xb1, 0xf },    /* avx-ne-convert */
    { INSN_VEX, 2, 0xb4, 0xb5, 0x2 },    /* avx-ifma */
    { INSN_VEX, 2, 0xcb, 0xcd, 0x8 },    /* sha512 */
    { INSN_VEX, 2, 0xd2, 0xd3, 0x7 },    /* avx-vnni-int16 */
    { INSN_VEX, 2, 0xda, 0xda, 0xf },    /* sm3, sm4 */
    { INSN_VEX, 2, 0xe0, 0xef, 0x2 },    /* cmpccxadd */
    { INSN_VEX, 3, 0xde, 0xde, 0x2 },    /* sm3rnds2 */
};

static bool is_newer(const struct insn *insn)
{
    if (insn->encoding == INSN_LEGACY && insn->map == 1 && insn->opcode == 0x01 &&
        insn->modrm_len && insn->bytes[insn->modrm_off] == 0xc6)
        return true; /* wrmsrns and similar instructions */
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
        if (newer[i].encoding == insn->encoding && newer[i].map == insn->map &&
            insn->opcode >= newer[i].first && insn->opcode <= newer[i].last &&
            newer[i].prefixes >> insn->prefix & 1)
            return true;
    }
    return false;
}

/* is_known - do both decoders decode @bytes, with the opcode of @like and an immediate of
 * the same length? Then the length of @like follows from rules that Zydis has, too.
 */
static bool is_known(const ZydisDecoder *decoder, const uint8_t *bytes, size_t len,
                     const struct insn *like)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction theirs;
    struct insn ours;

    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, len, &theirs, operands)))
        return false;
    if (insn_decode(&ours, bytes, len, like->addr))
        return false;
    return ours.len == theirs.length && ours.map == like->map &&
           ours.opcode == like->opcode && ours.imm_len == like->imm_len &&
           ours.modrm_len == like->modrm_len;
}

/* prefixes_replace - write @insn with other prefixes to @out.
 * @keep: the one of 66, f2 and f3 that stays; 0: none   Return: the number of bytes.
 */
static size_t prefixes_replace(uint8_t *out, const struct insn *insn, uint8_t keep,
                               uint8_t rex)
{
    size_t start = insn->legacy_len, len = 0;

    if (keep)
        out[len++] = keep;
    if (insn->addr67)
        out[len++] = 0x67;
    while ((insn->bytes[start] & 0xf0) == 0x40)
        start++;
    if (rex)
        out[len++] = rex;
    memcpy(out + len, insn->bytes + start, insn->len - start);
    return len + insn->len - start;
}

/* modrm_replace - replace the modrm byte of @insn by @modrm, for a register or [rax] as
 * operand.
 * Return: the number of bytes.
 */
static size_t modrm_replace(uint8_t *bytes, const struct insn *insn, size_t modrm_off,
                            uint8_t modrm)
{
    memset(bytes + modrm_off, 0, 32 - modrm_off);
    bytes[modrm_off] = modrm;
    /* the immediate is the opcode of a 3DNow! instruction */
    memcpy(bytes + modrm_off + 1, insn->bytes + insn->imm_off, insn->imm_len);
    return modrm_off + 1 + insn->imm_len;
}

static bool any_modrm_known(const ZydisDecoder *decoder, const struct insn *insn,
                            const uint8_t *bytes, size_t len)
{
    size_t modrm_off = len - (insn->len - insn->modrm_off);
    uint8_t variant[32] = { 0 };

    if (!insn->modrm_len)
        return false;
    memcpy(variant, bytes, len);
    for (unsigned modrm = 0; modrm < 256; modrm++) {
        size_t n;

        if (modrm < 0xc0 && (modrm & 0xc7) != 0 && (modrm & 0xc7) != 4)
            continue;
        n = modrm_replace(variant, insn, modrm_off, (uint8_t)modrm);
        if ((modrm & 0xc7) == 4 && n < 31) { /* vector index: [rax + xmm1] */
            memmove(variant + modrm_off + 2, variant + modrm_off + 1, insn->imm_len);
            variant[modrm_off + 1] = 0x08;
            n++;
        }
        if (is_known(decoder, variant, n, insn))
            return true;
    }
    return false;
}

static bool legacy_explained(const ZydisDecoder *decoder, const struct insn *insn)
{
    static const uint8_t keeps[] = { 0, 0x66, 0xf3, 0xf2 };
    uint8_t variant[32];
    size_t len;

    for (size_t i = 0; i < sizeof(keeps); i++) {
        len = prefixes_replace(variant, insn, keeps[i], insn->rex);
        if (is_known(decoder, variant, len, insn))
            return explained(PREFIX);
    }
    for (size_t i = 0; i < sizeof(keeps); i++) {
        len = prefixes_replace(variant, insn, keeps[i], insn->rex ? 0x40 : 0);
        if (any_modrm_known(decoder, insn, variant, len))
            return explained(EXTENSION);
    }
    return false;
}

static bool vex_explained(const ZydisDecoder *decoder, const struct insn *insn)
{
    uint8_t variant[32] = { 0 };
    size_t off = insn->opcode_off, len;

    for (unsigned field = 0; field < 8; field++) {
        uint8_t wvlp = (uint8_t)((field & 1) << 7 | (field & 2) << 1 | insn->prefix |
                                 (field & 4 ? 0x78 : 0x60));

        variant[0] = insn->encoding == INSN_XOP ? 0x8f : 0xc4;
        variant[1] = (uint8_t)(0xe0 | insn->map);
        variant[2] = wvlp;
        memcpy(variant + 3, insn->bytes + off, insn->len - off);
        len = 3 + insn->len - off;
        if (is_known(decoder, variant, len, insn) ||
            any_modrm_known(decoder, insn, variant, len))
            return explained(VECTOR_FIELD);
    }
    return false;
}

static bool evex_explained(const ZydisDecoder *decoder, const struct insn *insn)
{
    uint8_t variant[32] = { 0 };
    size_t off = insn->opcode_off, len;

    for (unsigned field = 0; field < 64; field++) {
        variant[0] = 0x62;
        variant[1] = (uint8_t)(0xf0 | insn->map);
        variant[2] =
            (uint8_t)((field & 1) << 7 | (field & 2 ? 0x7c : 0x64) | insn->prefix);
        variant[3] = (uint8_t)((field >> 2 & 3) << 5 | (field & 16) | 8 | field >> 5);
        memcpy(variant + 4, insn->bytes + off, insn->len - off);
        len = 4 + insn->len - off;
        if (any_modrm_known(decoder, insn, variant, len))
            return explained(VECTOR_FIELD);
    }
    return false;
}

bool explain_accepted(const ZydisDecoder *decoder, const struct insn *insn)
{
    if (is_newer(insn))
        return explained(NEWER);
    if (insn->encoding == INSN_LEGACY)
        return legacy_explained(decoder, insn);
    if (insn->encoding == INSN_EVEX)
        return evex_explained(decoder, insn);
    return vex_explained(decoder, insn);
}

bool explain_refused(const ZydisDecodedInstruction *theirs)
{
    switch (theirs->meta.isa_ext) {
    case ZYDIS_ISA_EXT_KNC:
    case ZYDIS_ISA_EXT_KNCE:
    case ZYDIS_ISA_EXT_KNCV:
        return explained(KNC);
    default:
        return false;
    }
}

static bool text_starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* is_prefix_alone - does objdump print a prefix as an instruction? It does so if it
 * cannot decode the bytes with the prefix, and goes on behind it.
 */
static bool is_prefix_alone(const char *text)
{
    static const char *const names[] = { "rex",  "data16", "addr32", "lock", "rep",
                                         "repz", "repnz",  "cs",     "ds",   "es",
                                         "ss",   "fs",     "gs" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i]);

        if (text_starts(text, names[i]) && !strchr(text, '%') && !strchr(text, '('))
            return text[n] == 0 || text[n] == '.' || text[n] == ' ';
    }
    return false;
}

bool explain_objdump(const ZydisDecoder *decoder, const uint8_t *bytes, size_t len,
                     const char *text)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction theirs;

    if (len > 1 && memchr(bytes, 0x9b, len - 1))
        return explained(FWAIT);
    if (strstr(text, "(bad)") || text_starts(text, ".byte"))
        return explained(BAD);
    if (is_prefix_alone(text))
        return explained(LONE_PREFIX);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, len, &theirs, operands)))
        return explained(REFUSED);
    return false;
}

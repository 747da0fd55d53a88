/* opcode_map.c - the one-byte map, the 0f map, and rules for the other maps. Pure.
 *
 * Each cell has an op and a form (both are from opcode_ops.h); a row has its ops first, and
 * its forms below them. The layout is that of the SDM: the high digit of the opcode chooses
 * one of sixteen rows, the low digit one of sixteen columns. Columns 0-7 are on the first
 * line, 8-f on the second. BAD means that the opcode is undefined in 64-bit mode, or is a
 * prefix. For the 0f map, opcode_set_has() tells with which prefixes an opcode exists.
 *
 * Source: SDM vol. 2, "Opcode Map"; APM vol. 3, "Opcode and Operand Encodings".
 */
#include "probes/insn/opcode_map.h"

#include "kernel/base/err.h"

struct map_row {
    uint8_t op[16];
    uint8_t form[16];
};

/* clang-format off */
#define OPS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                              \
    { OP_##a, OP_##b, OP_##c, OP_##d, OP_##e, OP_##f, OP_##g, OP_##h,                    \
      OP_##i, OP_##j, OP_##k, OP_##l, OP_##m, OP_##n, OP_##o, OP_##p }
#define FORMS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                            \
    { FM_##a, FM_##b, FM_##c, FM_##d, FM_##e, FM_##f, FM_##g, FM_##h,                    \
      FM_##i, FM_##j, FM_##k, FM_##l, FM_##m, FM_##n, FM_##o, FM_##p }
#define ALL_OPS(a) OPS(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a)
#define ALL_FORMS(a) FORMS(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a)

static const struct map_row one_byte_map[16] = {
    [0x0] = {
        OPS(ADD,   ADD,    ADD,    ADD,    ADD,    ADD,    BAD,    BAD,
            ADD,   ADD,    ADD,    ADD,    ADD,    ADD,    BAD,    BAD),
      FORMS(EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no,
            EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no) },
    [0x1] = {
        OPS(ADC,   ADC,    ADC,    ADC,    ADC,    ADC,    BAD,    BAD,
            ADC,   ADC,    ADC,    ADC,    ADC,    ADC,    BAD,    BAD),
      FORMS(EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no,
            EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no) },
    [0x2] = {
        OPS(ADD,   ADD,    ADD,    ADD,    ADD,    ADD,    BAD,    BAD,
            SUB,   SUB,    SUB,    SUB,    SUB,    SUB,    BAD,    BAD),
      FORMS(EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no,
            EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no) },
    [0x3] = {
        OPS(SUB,   SUB,    SUB,    SUB,    SUB,    SUB,    BAD,    BAD,
            CMP,   CMP,    CMP,    CMP,    CMP,    CMP,    BAD,    BAD),
      FORMS(EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no,
            EbGb,  EvGv,   GbEb,   GvEv,   ALIb,   AXIz,   no,     no) },
    [0x4] = { ALL_OPS(BAD), ALL_FORMS(no) },
    [0x5] = {
        OPS(PUSH,  PUSH,   PUSH,   PUSH,   PUSH,   PUSH,   PUSH,   PUSH,
            POP,   POP,    POP,    POP,    POP,    POP,    POP,    POP),
      ALL_FORMS(Zs) },
    [0x6] = {
        OPS(BAD,   BAD,    BAD,    MOV,    BAD,    BAD,    BAD,    BAD,
            PUSHI, IMUL3,  PUSHI,  IMUL3,  INS,    INS,    OUTS,   OUTS),
      FORMS(no,    no,     no,     GvEd,   no,     no,     no,     no,
            sIz,   GvEvIz, sIb,    GvEvIb, nb,     nz,     nb,     nz) },
    [0x7] = { ALL_OPS(JCC), ALL_FORMS(Jb) },
    [0x8] = {
        OPS(G1,    G1,     BAD,    G1,     CMP,    CMP,    XCHG,   XCHG,
            MOV,   MOV,    MOV,    MOV,    GSEGR,  LEA,    GSEGW,  G1A),
      FORMS(EbIb,  EvIz,   no,     EvIb,   EbGb,   EvGv,   EbGb,   EvGv,
            EbGb,  EvGv,   GbEb,   GvEv,   Ev,     GvM,    Ew,     Es) },
    [0x9] = {
        OPS(XCHG,  XCHG,   XCHG,   XCHG,   XCHG,   XCHG,   XCHG,   XCHG,
            CBW,   CWD,    BAD,    FWAIT,  PUSHF,  POPF,   SAHF,   LAHF),
      FORMS(ZvAX,  ZvAX,   ZvAX,   ZvAX,   ZvAX,   ZvAX,   ZvAX,   ZvAX,
            nv,    nv,     no,     no,     ns,     ns,     no,     no) },
    [0xa] = {
        OPS(MOV,   MOV,    MOV,    MOV,    MOVS,   MOVS,   CMPS,   CMPS,
            CMP,   CMP,    STOS,   STOS,   LODS,   LODS,   SCAS,   SCAS),
      FORMS(ALOb,  AXOv,   ObAL,   OvAX,   nb,     nv,     nb,     nv,
            ALIb,  AXIz,   nb,     nv,     nb,     nv,     nb,     nv) },
    [0xb] = {
        OPS(MOV,   MOV,    MOV,    MOV,    MOV,    MOV,    MOV,    MOV,
            MOV,   MOV,    MOV,    MOV,    MOV,    MOV,    MOV,    MOV),
      FORMS(ZbIb,  ZbIb,   ZbIb,   ZbIb,   ZbIb,   ZbIb,   ZbIb,   ZbIb,
            ZvIv,  ZvIv,   ZvIv,   ZvIv,   ZvIv,   ZvIv,   ZvIv,   ZvIv) },
    [0xc] = {
        OPS(G2,    G2,     RET,    RET,    BAD,    BAD,    G11,    G11,
            ENTER, LEAVE,  RETF,   RETF,   INT3,   INTN,   BAD,    IRET),
      FORMS(EbIb,  EvIb,   sIw,    ns,     no,     no,     EbIb,   EvIz,
            sIwIb, ns,     sIw,    nv,     no,     Ib,     no,     nv) },
    [0xd] = {
        OPS(G2,    G2,     G2,     G2,     BAD,    BAD,    BAD,    XLAT,
            X87,   X87,    X87,    X87,    X87,    X87,    X87,    X87),
      FORMS(Eb,    Ev,     EbCL,   EvCL,   no,     no,     no,     nb,
            V,     V,      V,      V,      V,      V,      V,      V) },
    [0xe] = {
        OPS(LOOP,  LOOP,   LOOP,   JRCXZ,  INI,    INI,    OUTI,   OUTI,
            CALL,  JMP,    BAD,    JMP,    IN,     IN,     OUT,    OUT),
      FORMS(Jb,    Jb,     Jb,     Jb,     Ib,     zIb,    Ib,     zIb,
            Jd,    Jd,     no,     Jb,     nb,     nz,     nb,     nz) },
    [0xf] = {
        OPS(BAD,   INT1,   BAD,    BAD,    HLT,    CMC,    G3B,    G3V,
            CLC,   CLC,    CLI,    STI,    CLD,    CLD,    G4,     G5),
      FORMS(no,    no,     no,     no,     no,     no,     Eb,     Ev,
            no,    no,     no,     no,     no,     no,     Eb,     Ev) },
};

static const struct map_row map_0f[16] = {
    [0x0] = {
        OPS(G6,    G7,     LAR,    LAR,    BAD,    SYSCAL, CLTS,   SYSRET,
            INVD,  INVD,   BAD,    UD,     BAD,    GPREF,  EMMS,   VEC),
      FORMS(Ev,    Ev,     GvEw,   GvEw,   no,     no,     no,     nv,
            no,    no,     no,     no,     no,     Ev,     no,     VIb) },
    [0x1] = {
        OPS(VEC,   VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    VEC,
            G16,   NOP,    GMPX,   GMPXM,  GCLDM,  NOP,    GHINT,  NOP),
      FORMS(V,     V,      V,      V,      V,      V,      V,      V,
            Ev,    Ev,     V,      V,      Ev,     Ev,     Ev,     Ev) },
    [0x2] = {
        OPS(GCRR,  MOVFDR, GCRW,   MOVTDR, BAD,    BAD,    BAD,    BAD,
            VEC,   VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    VEC),
      FORMS(Rq,    Rq,     Rq,     Rq,     no,     no,     no,     no,
            V,     V,      V,      V,      V,      V,      V,      V) },
    [0x3] = {
        OPS(WRMSR, RDTSC,  RDMSR,  RDMSR,  SYSENT, SYSEXI, BAD,    MODE,
            BAD,   BAD,    BAD,    BAD,    BAD,    BAD,    BAD,    BAD),
      FORMS(no,    nv,     nv,     nv,     no,     nv,     no,     no,
            no,    no,     no,     no,     no,     no,     no,     no) },
    [0x4] = { ALL_OPS(CMOV), ALL_FORMS(GvEv) },
    [0x5] = { ALL_OPS(VEC), ALL_FORMS(V) },
    [0x6] = { ALL_OPS(VEC), ALL_FORMS(V) },
    [0x7] = {
        OPS(VEC,   VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    EMMS,
            VEC,   VEC,    BAD,    BAD,    VEC,    VEC,    VEC,    VEC),
      FORMS(VIb,   VIb,    VIb,    VIb,    V,      V,      V,      no,
            V,     V,      no,     no,     V,      V,      V,      V) },
    [0x8] = { ALL_OPS(JCC), ALL_FORMS(Jd) },
    [0x9] = { ALL_OPS(SETCC), ALL_FORMS(Eb) },
    [0xa] = {
        OPS(PUSHS, POPS,   CPUID,  BT,     SHXD,   SHXDCL, PADLCK, PADLCK,
            PUSHS, POPS,   MODE,   BTS,    SHXD,   SHXDCL, G15,    IMUL),
      FORMS(ns,    ns,     nv,     EvGv,   EvGvIb, EvGv,   V,      V,
            ns,    ns,     no,     EvGv,   EvGvIb, EvGv,   Ey,     GvEv) },
    [0xb] = {
        OPS(CMPXCH, CMPXCH, LSS,   BTS,    LSS,    LSS,    MOV,    MOV,
            POPCNT, UD,    G8,     BTS,    BSF,    BSF,    MOV,    MOV),
      FORMS(EbGb,  EvGv,   GvM,    EvGv,   GvM,    GvM,    GvEb,   GvEw,
            GvEv,  V,      EvIb,   EvGv,   GvEv,   GvEv,   GvEb,   GvEw) },
    [0xc] = {
        OPS(XADD,  XADD,   VEC,    MOV,    VEC,    VEC,    VEC,    G9,
            BSWAP, BSWAP,  BSWAP,  BSWAP,  BSWAP,  BSWAP,  BSWAP,  BSWAP),
      FORMS(EbGb,  EvGv,   VIb,    MyGy,   VIb,    VIb,    VIb,    Ev,
            Zv,    Zv,     Zv,     Zv,     Zv,     Zv,     Zv,     Zv) },
    [0xd] = { ALL_OPS(VEC), ALL_FORMS(V) },
    [0xe] = { ALL_OPS(VEC), ALL_FORMS(V) },
    [0xf] = {
        OPS(VEC,   VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    MASKMV,
            VEC,   VEC,    VEC,    VEC,    VEC,    VEC,    VEC,    UD),
      FORMS(V,     V,      V,      V,      V,      V,      V,      V,
            V,     V,      V,      V,      V,      V,      V,      V) },
};
/* clang-format on */

struct cell {
    uint8_t op, form;
};

/* Exceptions: opcodes that are another instruction with another prefix, or that do not
 * follow the rule of their map.
 */
static const struct exception {
    uint8_t map, opcode, prefixes; /* bit: enum insn_prefix */
    struct cell cell;
} exceptions[] = {
    { 1, 0x78, 1 << INSN_PREFIX_NONE, { OP_SYSANY, FM_Eq } }, /* vmread */
    { 1, 0x79, 1 << INSN_PREFIX_NONE, { OP_SYSANY, FM_Eq } }, /* vmwrite */
    { 1, 0x78, 0x0f, { OP_VEC, FM_VIbIb } },                  /* extrq, insertq */
    { 2, 0x80, 0x0f, { OP_SYSANY, FM_GvM } },                 /* invept */
    { 2, 0x81, 0x0f, { OP_SYSANY, FM_GvM } },                 /* invvpid */
    { 2, 0x82, 0x0f, { OP_SYSANY, FM_GvM } },                 /* invpcid */
    { 2, 0xf0, 1 << INSN_PREFIX_F2, { OP_CRC32, FM_GyEb } },  /* crc32 */
    { 2, 0xf1, 1 << INSN_PREFIX_F2, { OP_CRC32, FM_GyEv } },  /* crc32 */
    { 2, 0xf0, 0x0f, { OP_MOV, FM_GvM } },                    /* movbe, from memory */
    { 2, 0xf1, 0x0f, { OP_MOV, FM_MvGv } },                   /* movbe, to memory */
    { 2, 0xf5, 0x0f, { OP_SHSTK, FM_Ey } },                   /* wruss */
    { 2, 0xf6, 1 << INSN_PREFIX_NONE, { OP_SHSTK, FM_Ey } },  /* wrss */
    { 2, 0xf6, 1 << INSN_PREFIX_66, { OP_ADCX, FM_GyEy } },   /* adcx */
    { 2, 0xf6, 1 << INSN_PREFIX_F3, { OP_ADOX, FM_GyEy } },   /* adox */
    { 2, 0xf8, 0x0f, { OP_SYSANY, FM_GvM } },                 /* movdir64b, enqcmd */
    { 2, 0xf9, 0x0f, { OP_MOV, FM_MyGy } },                   /* movdiri */
};

static bool exception_find(const struct insn *insn, struct cell *cell)
{
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
        const struct exception *e = &exceptions[i];

        if (e->map != insn->map || e->opcode != insn->opcode)
            continue;
        if (e->prefixes & 1u << insn->prefix) {
            *cell = e->cell;
            return true;
        }
    }
    return false;
}

static struct cell row_cell(const struct map_row *map, uint8_t opcode)
{
    const struct map_row *row = &map[opcode >> 4];

    return (struct cell){ row->op[opcode & 15], row->form[opcode & 15] };
}

static struct cell legacy_cell(const struct insn *insn)
{
    struct cell cell;

    if (insn->map == 0)
        return row_cell(one_byte_map, insn->opcode);
    if (exception_find(insn, &cell))
        return cell;
    if (insn->map == 1)
        return row_cell(map_0f, insn->opcode);
    return (struct cell){ OP_VEC, insn->map == 3 ? FM_VIb : FM_V };
}

/* An instruction of VEX or EVEX map 1 has an immediate if the same opcode of the 0f map has
 * one. Instructions of map 3 always have an immediate, instructions of other maps never.
 */
static struct cell vector_cell(const struct insn *insn)
{
    struct cell cell = { OP_VEC, FM_V };

    if (insn->map == 3)
        cell.form = FM_VIb;
    if (insn->map != 1)
        return cell;
    if (insn->encoding == INSN_VEX && insn->opcode == 0x77) {
        cell.form = FM_no; /* vzeroupper, vzeroall */
        return cell;
    }
    if (row_cell(map_0f, insn->opcode).form == FM_VIb)
        cell.form = FM_VIb;
    if (row_cell(map_0f, insn->opcode).op == OP_MASKMV)
        cell.op = OP_MASKMV;
    return cell;
}

static struct cell xop_cell(const struct insn *insn)
{
    static const uint8_t forms[] = { FM_VIb, FM_V, FM_VId }; /* maps 8, 9, a */

    return (struct cell){ OP_VEC, forms[insn->map - 8] };
}

int opcode_map_find(struct insn *insn)
{
    struct cell cell;

    if (insn->encoding == INSN_LEGACY)
        cell = legacy_cell(insn);
    else if (!opcode_set_has(insn))
        return -EILSEQ;
    else
        cell = insn->encoding == INSN_XOP ? xop_cell(insn) : vector_cell(insn);
    if (cell.op == OP_BAD)
        return -EILSEQ;
    if (insn->encoding == INSN_LEGACY && insn->map != 0 && !opcode_set_has(insn))
        return -EILSEQ;
    insn->op = cell.op;
    insn->form = cell.form;
    return 0;
}

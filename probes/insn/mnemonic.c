/* mnemonic.c - tell the name of an instruction. Pure.
 *
 * An op of opcode_ops.h stands for all instructions that treat their operands and the flags
 * alike. If that is one instruction, its name is in the table of names. If there are
 * several, the opcode or modrm.reg chooses the name.
 *
 * Source: SDM vol. 2, "Instruction Set Reference", for the names. If the manual has several
 * names for one condition, the name of binutils is used.
 */
#include "probes/insn/mnemonic.h"
#include "probes/insn/opcode_ops.h"

static unsigned modrm_reg(const struct insn *insn)
{
    return insn->modrm_len ? insn->bytes[insn->modrm_off] >> 3 & 7 : 0;
}

static unsigned modrm_rm(const struct insn *insn)
{
    return insn->modrm_len ? insn->bytes[insn->modrm_off] & 7 : 0;
}

/* clang-format off */
static const char *const names[OP_COUNT] = {
    [OP_ADCX] = "adcx", [OP_ADOX] = "adox", [OP_CRC32] = "crc32", [OP_IMUL] = "imul",
    [OP_IMUL3] = "imul", [OP_NOT] = "not", [OP_BT] = "bt", [OP_POPCNT] = "popcnt",
    [OP_BSWAP] = "bswap", [OP_XCHG] = "xchg", [OP_XADD] = "xadd", [OP_CMPXCH] = "cmpxchg",
    [OP_LEA] = "lea", [OP_XLAT] = "xlat", [OP_CMC] = "cmc", [OP_SAHF] = "sahf",
    [OP_LAHF] = "lahf", [OP_CLI] = "cli", [OP_STI] = "sti", [OP_PUSH] = "push",
    [OP_PUSHM] = "push", [OP_PUSHI] = "push", [OP_POP] = "pop", [OP_POPM] = "pop",
    [OP_PUSHS] = "push", [OP_POPS] = "pop", [OP_ENTER] = "enter", [OP_LEAVE] = "leave",
    [OP_INI] = "in", [OP_IN] = "in", [OP_OUTI] = "out", [OP_OUT] = "out",
    [OP_NOP] = "nop", [OP_PAUSE] = "pause", [OP_JMP] = "jmp", [OP_JMPR] = "jmp",
    [OP_JMPM] = "jmp", [OP_CALL] = "call", [OP_CALLR] = "call", [OP_CALLM] = "call",
    [OP_CALLF] = "lcall", [OP_JMPF] = "ljmp", [OP_RET] = "ret", [OP_RETF] = "lret",
    [OP_INT3] = "int3", [OP_INT1] = "int1", [OP_INTN] = "int", [OP_HLT] = "hlt",
    [OP_SYSCAL] = "syscall", [OP_SYSRET] = "sysret", [OP_SYSENT] = "sysenter",
    [OP_SYSEXI] = "sysexit", [OP_SWAPGS] = "swapgs", [OP_MOVSS] = "mov",
    [OP_LDDS] = "mov", [OP_LDSEG] = "mov", [OP_MOVFCR] = "mov", [OP_MOVTCR] = "mov",
    [OP_MOVFDR] = "mov", [OP_MOVTDR] = "mov", [OP_CLTS] = "clts", [OP_LMSW] = "lmsw",
    [OP_SMSW] = "smsw", [OP_LGDT] = "lgdt", [OP_LIDT] = "lidt", [OP_LLDT] = "lldt",
    [OP_LTR] = "ltr", [OP_INVLPG] = "invlpg", [OP_RDTSC] = "rdtsc",
    [OP_RDTSCP] = "rdtscp", [OP_CPUID] = "cpuid", [OP_PTWRIT] = "ptwrite",
    [OP_UMONIT] = "umonitor", [OP_XBEGIN] = "xbegin", [OP_XABORT] = "xabort",
    [OP_XEND] = "xend", [OP_XTEST] = "xtest", [OP_FWAIT] = "fwait",
};
/* clang-format on */

static const char *const conditions[16] = {
    "o", "no", "b", "ae", "e", "ne", "be", "a",
    "s", "ns", "p", "np", "l", "ge", "le", "g",
};

/* The eight operations that opcodes 00 to 3f and group 1 have. */
static const char *arithmetic_name(const struct insn *insn)
{
    static const char *const eight[] = { "add", "or",  "adc", "sbb",
                                         "and", "sub", "xor", "cmp" };

    if (insn->opcode < 0x40)
        return eight[insn->opcode >> 3];
    if (insn->opcode <= 0x83)
        return eight[modrm_reg(insn)];
    return NULL; /* another opcode */
}

/* Groups 3 to 5: f6, f7, fe, ff. */
static const char *unary_name(const struct insn *insn)
{
    static const char *const of_f6[] = { "test", "test", "not", "neg",
                                         "mul",  "imul", "div", "idiv" };

    if (insn->opcode >= 0xfe)
        return modrm_reg(insn) ? "dec" : "inc";
    return of_f6[modrm_reg(insn)];
}

static const char *compare_name(const struct insn *insn)
{
    bool is_test = insn->opcode == 0x84 || insn->opcode == 0x85 || insn->opcode == 0xa8 ||
                   insn->opcode == 0xa9;

    if (insn->opcode >= 0xf6)
        return unary_name(insn);
    return is_test ? "test" : arithmetic_name(insn);
}

static const char *move_name(const struct insn *insn)
{
    if (insn->map == 0)
        return insn->opcode == 0x63 ? "movsxd" : "mov";
    if (insn->map == 2)
        return insn->opcode == 0xf9 ? "movdiri" : "movbe";
    if (insn->opcode == 0xc3)
        return "movnti";
    return insn->opcode <= 0xb7 ? "movzx" : "movsx";
}

static const char *shift(const struct insn *insn)
{
    static const char *const of_reg[] = { "rol", "ror", "rcl", "rcr",
                                          "shl", "shr", "shl", "sar" };

    return of_reg[modrm_reg(insn)];
}

static const char *bit(const struct insn *insn)
{
    static const char *const of_reg[] = { "bt", "bts", "btr", "btc" };

    if (insn->opcode == 0xba)
        return of_reg[modrm_reg(insn) & 3];
    return of_reg[insn->opcode >> 3 & 3]; /* a3 ab b3 bb */
}

static const char *bit_scan(const struct insn *insn)
{
    bool is_counting = insn->rep == INSN_PREFIX_F3;

    if (insn->opcode == 0xbc)
        return is_counting ? "tzcnt" : "bsf";
    return is_counting ? "lzcnt" : "bsr";
}

/* by_size - the name for the operand size. @of: for 2, 4 and 8 bytes */
static const char *by_size(const struct insn *insn, const char *const of[3])
{
    return of[insn->opsize == 8 ? 2 : insn->opsize == 4 ? 1 : 0];
}

static const char *convert(const struct insn *insn)
{
    static const char *const of_98[] = { "cbw", "cwde", "cdqe" };
    static const char *const of_99[] = { "cwd", "cdq", "cqo" };

    return by_size(insn, insn->opcode == 0x98 ? of_98 : of_99);
}

static const char *string(const struct insn *insn)
{
    static const char *const all[][4] = {
        { "insb", "insw", "insd", "insd" },     { "outsb", "outsw", "outsd", "outsd" },
        { "movsb", "movsw", "movsd", "movsq" }, { "cmpsb", "cmpsw", "cmpsd", "cmpsq" },
        { "stosb", "stosw", "stosd", "stosq" }, { "lodsb", "lodsw", "lodsd", "lodsq" },
        { "scasb", "scasw", "scasd", "scasq" },
    };
    static const uint8_t opcodes[] = { 0x6c, 0x6e, 0xa4, 0xa6, 0xaa, 0xac, 0xae };
    /* REX.W makes the elements of ins and outs no wider than 4 bytes. But with REX.W a 66
     * prefix has no effect.
     */
    unsigned size = insn->rex & 8 ? 3 : insn->opsize == 4 ? 2 : 1;

    for (size_t i = 0; i < sizeof(opcodes); i++)
        if ((insn->opcode & 0xfe) == opcodes[i])
            return insn->opcode & 1 ? all[i][size] : all[i][0];
    return NULL;
}

static const char *stack_flags(const struct insn *insn)
{
    static const char *const of_9c[] = { "pushf", "pushfq", "pushfq" };
    static const char *const of_9d[] = { "popf", "popfq", "popfq" };

    return by_size(insn, insn->opcode == 0x9c ? of_9c : of_9d);
}

static const char *interrupt_return(const struct insn *insn)
{
    static const char *const of_cf[] = { "iret", "iretd", "iretq" };

    if (insn->map == 0)
        return by_size(insn, of_cf);
    if (modrm_reg(insn) == 5)
        return "uiret";
    return insn->prefix == INSN_PREFIX_F2 ? "erets" : "eretu";
}

static const char *loop(const struct insn *insn)
{
    static const char *const of_low[] = { "loopne", "loope", "loop" };

    if (insn->opcode == 0xe3)
        return insn->addr67 ? "jecxz" : "jrcxz";
    return of_low[insn->opcode & 3];
}

static const char *prefetch(const struct insn *insn)
{
    static const char *const of_18[] = { "prefetchnta", "prefetcht0", "prefetcht1",
                                         "prefetcht2" };
    static const char *const of_0d[] = { "prefetch", "prefetchw", "prefetchwt1" };
    unsigned reg = modrm_reg(insn);

    if (insn->opcode == 0x18 && reg < 4)
        return of_18[reg];
    if (insn->opcode == 0x0d)
        return of_0d[reg < 3 ? reg : 0];
    return insn->opcode == 0x1c ? "cldemote" : NULL;
}

static const char *undefined(const struct insn *insn)
{
    return insn->opcode == 0x0b ? "ud2" : insn->opcode == 0xb9 ? "ud1" : "ud0";
}

static const char *cache_line(const struct insn *insn)
{
    if (insn->prefix != INSN_PREFIX_66)
        return "clflush";
    return modrm_reg(insn) == 6 ? "clwb" : "clflushopt";
}

/* Group 7 in register form has an instruction for each value of modrm. */
static const char *group7_name(const struct insn *insn)
{
    switch (insn->bytes[insn->modrm_off]) {
    case 0xc6:
        return "wrmsrns";
    case 0xc8:
        return "monitor";
    case 0xc9:
        return "mwait";
    case 0xca:
        return "clac";
    case 0xcb:
        return "stac";
    case 0xd0:
        return "xgetbv";
    case 0xd1:
        return "xsetbv";
    case 0xe8:
        return insn->prefix == INSN_PREFIX_NONE ? "serialize" : NULL;
    case 0xee:
        return "rdpkru";
    case 0xef:
        return "wrpkru";
    case 0xfa:
        return insn->prefix == INSN_PREFIX_F3 ? "mcommit" : "monitorx";
    case 0xfb:
        return "mwaitx";
    default:
        return NULL;
    }
}

static const char *wide(const struct insn *insn, const char *narrow,
                        const char *wide_name)
{
    return insn->rex & 8 ? wide_name : narrow;
}

/* 0f ae with memory, and three of group 9. */
static const char *save_state(const struct insn *insn)
{
    bool w = insn->rex & 8;

    if (insn->opcode == 0xc7) {
        unsigned reg = modrm_reg(insn);

        if (reg == 3)
            return w ? "xrstors64" : "xrstors";
        if (reg == 4)
            return w ? "xsavec64" : "xsavec";
        return w ? "xsaves64" : "xsaves";
    }
    switch (modrm_reg(insn)) {
    case 0:
        return w ? "fxsave64" : "fxsave";
    case 1:
        return w ? "fxrstor64" : "fxrstor";
    case 2:
        return "ldmxcsr";
    case 3:
        return "stmxcsr";
    case 4:
        return w ? "xsave64" : "xsave";
    case 5:
        return w ? "xrstor64" : "xrstor";
    default:
        return w ? "xsaveopt64" : "xsaveopt";
    }
}

static const char *base_of_segment(const struct insn *insn)
{
    static const char *const of_ae[] = { "rdfsbase", "rdgsbase", "wrfsbase", "wrgsbase" };

    return insn->opcode == 0xae ? of_ae[modrm_reg(insn) & 3] : "rdpid";
}

static const char *one_of(const struct insn *insn, uint8_t opcode, const char *that,
                          const char *other)
{
    return insn->opcode == opcode ? that : other;
}

/* several - the name of @insn, whose op stands for several instructions; NULL: no name. */
static const char *several(const struct insn *insn)
{
    static const char *const segments[] = { "lss", "", "lfs", "lgs" };

    switch (insn->op) {
    case OP_ADD:
        return insn->opcode >= 0xf6 ? unary_name(insn) : arithmetic_name(insn);
    case OP_SUB:
    case OP_ADC:
        return arithmetic_name(insn);
    case OP_CMP:
        return compare_name(insn);
    case OP_INC:
    case OP_MUL:
    case OP_MULB:
    case OP_DIV:
    case OP_DIVB:
        return unary_name(insn);
    case OP_ROT:
    case OP_ROTC:
    case OP_SHIFT:
        return shift(insn);
    case OP_SHXD:
    case OP_SHXDCL:
        return insn->opcode & 8 ? "shrd" : "shld";
    case OP_BTS:
        return bit(insn);
    case OP_BSF:
        return bit_scan(insn);
    case OP_CMPX8B:
        return wide(insn, "cmpxchg8b", "cmpxchg16b");
    case OP_MOV:
        return move_name(insn);
    case OP_CBW:
    case OP_CWD:
        return convert(insn);
    case OP_CLC:
        return one_of(insn, 0xf8, "clc", "stc");
    case OP_CLD:
        return one_of(insn, 0xfc, "cld", "std");
    case OP_PUSHF:
    case OP_POPF:
        return stack_flags(insn);
    case OP_MOVS:
    case OP_CMPS:
    case OP_STOS:
    case OP_LODS:
    case OP_SCAS:
    case OP_INS:
    case OP_OUTS:
        return string(insn);
    case OP_HINT:
        return prefetch(insn);
    case OP_ENDBR:
        return modrm_rm(insn) == 2 ? "endbr64" : "endbr32";
    case OP_FENCE:
        return modrm_reg(insn) == 5   ? "lfence"
               : modrm_reg(insn) == 6 ? "mfence"
                                      : "sfence";
    case OP_CLFLSH:
        return cache_line(insn);
    case OP_LOOP:
    case OP_JRCXZ:
        return loop(insn);
    case OP_IRET:
        return interrupt_return(insn);
    case OP_UD:
        return undefined(insn);
    case OP_LSS:
        return segments[insn->opcode - 0xb2];
    case OP_SGDT:
        return modrm_reg(insn) ? "sidt" : "sgdt";
    case OP_SLDT:
        return modrm_reg(insn) ? "str" : "sldt";
    case OP_VERR:
        return modrm_reg(insn) == 4 ? "verr" : "verw";
    case OP_LAR:
        return one_of(insn, 0x02, "lar", "lsl");
    case OP_INVD:
        return insn->opcode == 0x08          ? "invd"
               : insn->rep == INSN_PREFIX_F3 ? "wbnoinvd"
                                             : "wbinvd";
    case OP_WRMSR:
        return insn->opcode == 0x30 ? "wrmsr" : group7_name(insn);
    case OP_RDMSR:
        return insn->opcode == 0x01 ? group7_name(insn)
                                    : one_of(insn, 0x32, "rdmsr", "rdpmc");
    case OP_CLAC:
    case OP_WRXCR:
    case OP_MONITR:
    case OP_SERIAL:
    case OP_MWAIT:
        return group7_name(insn);
    case OP_TPAUSE:
        return insn->prefix == INSN_PREFIX_66 ? "tpause" : "umwait";
    case OP_RDBASE:
    case OP_WRBASE:
        return base_of_segment(insn);
    case OP_RDRAND:
        return modrm_reg(insn) == 6 ? "rdrand" : "rdseed";
    case OP_XSAVE:
        return save_state(insn);
    case OP_EMMS:
        return one_of(insn, 0x77, "emms", "femms");
    default:
        return NULL;
    }
}

/* name_append - write @text to @buf at offset @len. Return: the new length. */
static size_t name_append(char buf[INSN_MNEMONIC_MAX], size_t len, const char *text)
{
    while (*text && len + 1 < INSN_MNEMONIC_MAX)
        buf[len++] = *text++;
    buf[len] = '\0';
    return len;
}

/* A rep prefix repeats a string instruction. Before other instructions it is not part of
 * the name.
 */
static const char *repeat(const struct insn *insn)
{
    bool compares = insn->op == OP_CMPS || insn->op == OP_SCAS;
    bool is_string = compares || insn->op == OP_MOVS || insn->op == OP_STOS ||
                     insn->op == OP_LODS || insn->op == OP_INS || insn->op == OP_OUTS;

    if (!is_string || insn->rep == INSN_PREFIX_NONE)
        return "";
    if (insn->rep == INSN_PREFIX_F2)
        return "repne ";
    return compares ? "repe " : "rep ";
}

const char *insn_mnemonic(char buf[INSN_MNEMONIC_MAX], const struct insn *insn)
{
    const char *name = names[insn->op];
    const char *condition = "";
    size_t len;

    if (insn->op == OP_JCC || insn->op == OP_SETCC || insn->op == OP_CMOV) {
        name = insn->op == OP_JCC ? "j" : insn->op == OP_SETCC ? "set" : "cmov";
        condition = conditions[insn->cond & 15];
    }
    if (!name)
        name = several(insn);
    if (!name)
        return NULL;
    len = name_append(buf, 0, insn->lock ? "lock " : repeat(insn));
    len = name_append(buf, len, name);
    name_append(buf, len, condition);
    return buf;
}

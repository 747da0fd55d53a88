/* fetch.h - what an event records: arguments as small programs, and the interpreter that
 * runs them at a hit.
 *
 * An argument such as `name=+0(%si):string` is compiled once, when the event is defined.
 * Its program has four stages, each of which may be missing but the first:
 *
 *     load     a register, a word of the stack, a constant, a text
 *     deref*   value = memory[value + offset]
 *     store    the value, or the memory it points to, into the record
 *     shape    a bit field of what was stored; the same again for each element of an array
 *
 * A record has Linux's layout: a fixed part, where a string is a word that says where it lies
 * (its length, NUL included, above 16 bits of offset from the record's start), and behind it
 * the strings.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/agent/agent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_ARGS_MAX 128 /* arguments of an event */
#define FETCH_NAME_MAX 32  /* characters of an argument's name */
#define FETCH_TEXT_MAX 63  /* characters of its expression, type included */
#define FETCH_TEXT_LONG (2 * AGENT_CODE_MAX + FETCH_TEXT_MAX) /* with a program of gdb */
#define FETCH_OPS_MAX 16 /* instructions of its program, the end included */
#define FETCH_CODE_MAX                                                                   \
    (FETCH_OPS_MAX + AGENT_CODE_MAX / 16) /* the same, behind it gdb's */
#define FETCH_ARRAY_MAX 64                /* elements */
#define FETCH_STRING_MAX 4096             /* bytes of a string, NUL included */
#define FETCH_ENTRY_MAX 16      /* arguments that a return probe saves at the entry */
#define FETCH_REG_ARGS 6        /* arguments of a function that are in registers */
#define FETCH_ENTRY_TIME 0xffff /* saved at the entry in the place of an argument */

enum fetch_kind { /* how a value is shown */
                  FETCH_UNSIGNED,
                  FETCH_SIGNED,
                  FETCH_HEX,
                  FETCH_CHAR,
                  FETCH_SYMBOL,
                  FETCH_STRING,
};

struct fetch_type {
    const char *name;  /* as it is written */
    const char *field; /* as the file `format` calls it */
    uint8_t size;      /* bytes of one element in the fixed part */
    enum fetch_kind kind;
};

enum fetch_op {
    FETCH_END,
    FETCH_LOAD_REG,   /* value: offset in struct pt_regs */
    FETCH_LOAD_STACK, /* value: word number */
    FETCH_LOAD_SP,    /* the stack pointer itself */
    FETCH_LOAD_ARG,   /* value: the function's argument, from 0 */
    FETCH_LOAD_ENTRY, /* value: index of what was saved at the entry */
    FETCH_LOAD_NS,    /* value: index of the time that was saved there; since then */
    FETCH_LOAD_VALUE, /* value: itself */
    FETCH_LOAD_ADDR,  /* the address that is watched */
    FETCH_LOAD_COMM,  /* the name of the thread */
    FETCH_LOAD_TEXT,  /* text: itself */
    FETCH_LOAD_AGENT, /* value: instructions from here to a program of gdb, len: its bytes */
    FETCH_NAME,       /* text: the symbol whose address the next one loads */
    FETCH_DEREF,      /* value: offset */
    FETCH_DEREF_USER, /* the same in the memory of a user */
    FETCH_STORE,      /* size: bytes of the value */
    FETCH_STORE_MEM,  /* value: offset; size: bytes from there */
    FETCH_STORE_MEM_USER,
    FETCH_STORE_STRING, /* value: offset */
    FETCH_STORE_STRING_USER,
    FETCH_STORE_SYMBOL, /* the name of the place that the value is the address of */
    FETCH_BITS,   /* size: of the container; value: low bit, above it 8 bits of width */
    FETCH_REPEAT, /* value: elements */
};

struct fetch_insn {
    uint8_t op;
    uint8_t size;
    uint16_t len; /* bytes of @text, which need not end there */
    union {
        int64_t value;
        const char *text;
    };
};

/* One argument. All of it is immutable once compiled. */
struct fetch_arg {
    const char *name;
    const char *text; /* as it was written, with its type */
    const struct fetch_type *type;
    const struct fetch_insn *code; /* ends with FETCH_END */
    uint32_t offset;               /* bytes from the first argument of the record */
    uint16_t count;                /* elements of the array; 0: no array */
};

/* What a hit gives to read from. */
struct fetch_from {
    const struct pt_regs *regs;
    uintptr_t ip;          /* the instruction of the probe, for programs of gdb */
    const uint64_t *entry; /* of a return probe: what fetch_entry() saved; else NULL */
    const char *comm;      /* the thread's name, or NULL */
    uintptr_t watched;     /* of a watch: its address */
    uint64_t (*now)(void); /* nanoseconds; NULL: they are not known */
    /* The return address that the program has at this word of the stack; 0: the word is as
     * it is. NULL: all are.
     */
    uintptr_t (*returns)(const uintptr_t *slot);
    /* Copy @len bytes from @addr. Return: 0; -EFAULT they cannot be read. */
    int (*read)(void *dst, uintptr_t addr, size_t len, bool user);
    /* The place @addr as text, "vfs_read+0x4/0x90", with a NUL; NULL: as a number. Return:
     * its length.
     */
    size_t (*symbol)(char *buf, size_t size, uintptr_t addr);
};

/* The record that is written. */
struct fetch_to {
    uint8_t *record; /* its first byte */
    size_t size;     /* how long it may become, at most 0xffff bytes */
    size_t used;     /* how long it is */
    unsigned faults; /* values and strings that could not be read */
    unsigned cut;    /* strings that did not fit */
};

/* fetch_code_len - instructions of a program, with what is behind its end. Context: any. */
size_t fetch_code_len(const struct fetch_insn *code);

/* fetch_type_find - the type of this name, or of the container of a bit field; NULL: none.
 * @name: @len bytes
 */
const struct fetch_type *fetch_type_find(const char *name, size_t len);

/* fetch_fixed_size - bytes of an argument in the fixed part. Context: any. */
size_t fetch_fixed_size(const struct fetch_arg *arg);

/* fetch_strings_size - how many bytes the strings of @args take just now, for reserving a
 * record. They may change before they are stored: fetch_args() keeps to its bounds.
 *
 * Context: any.  Cost: reads each string once.
 */
size_t fetch_strings_size(const struct fetch_arg *args, size_t count,
                          const struct fetch_from *from);

/* fetch_args - run the programs and store what they find.
 * @head: bytes of the record before its first argument
 * @to:   @size must have room for the fixed part; strings are put behind it as far as there
 *        is room, each with a NUL. What cannot be read is stored as zeros, a string as one of
 *        no length, which is shown as (fault).
 *
 * Context: any.  Locks: none.
 * Cost:    one pass over the programs; no allocation, no loop without a bound.
 */
void fetch_args(const struct fetch_arg *args, size_t count, size_t head,
                const struct fetch_from *from, struct fetch_to *to);

/* fetch_entry - at the entry of a function: the arguments that are recorded at its return.
 * @numbers: which, from 0
 * Context: any.
 */
void fetch_entry(const uint16_t *numbers, size_t count, const struct fetch_from *from,
                 uint64_t *saved);

/* fetch_is_operand - is the argument a register or a constant, stored as it is? Then the
 * probe's own code may store it. @insn: the load.
 */
bool fetch_is_operand(const struct fetch_arg *arg, const struct fetch_insn **insn);

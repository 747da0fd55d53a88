/* fetch.h - describes the arguments that an event records: each argument is a small
 * program, and an interpreter runs the programs at a hit.
 *
 * An argument such as `name=+0(%si):string` is compiled once, when the event is defined.
 * Its program has four stages. The stages deref and shape may be missing:
 *
 *     load     a register, a word of the stack, a constant, a text
 *     deref*   value = memory[value + offset]
 *     store    the value, or the memory it points to, into the record
 *     shape    take a bit field of the stored bytes; repeat for each element of an array
 *
 * A record has Linux's layout: a fixed part, and behind it the strings. In the fixed part
 * a 32-bit word stands for each string. The upper 16 bits of the word are the string's
 * length, NUL included; the lower 16 bits are the string's offset from the start of the
 * record.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/agent/agent.h"
#include "probes/trace/language/symbol_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_ARGS_MAX 128 /* arguments of an event */
#define FETCH_NAME_MAX 32  /* characters of an argument's name */
#define FETCH_TEXT_MAX 63  /* characters of its expression, type included */
#define FETCH_TEXT_LONG (2 * AGENT_CODE_MAX + FETCH_TEXT_MAX) /* if agent(HEX) is in it */
#define FETCH_OPS_MAX 16 /* instructions of its program, the end included */
#define FETCH_CODE_MAX                                                                   \
    (FETCH_OPS_MAX + AGENT_CODE_MAX / 16) /* and room for a program of gdb behind them */
#define FETCH_ARRAY_MAX 64                /* elements */
#define FETCH_STRING_MAX 4096             /* bytes of a string, NUL included */
#define FETCH_ENTRY_MAX 16      /* arguments that a return probe saves at the entry */
#define FETCH_REG_ARGS 6        /* arguments of a function that are in registers */
#define FETCH_ENTRY_TIME 0xffff /* in a list of argument numbers: save the time instead */

enum fetch_kind { /* how a value is printed */
                  FETCH_UNSIGNED,
                  FETCH_SIGNED,
                  FETCH_HEX,
                  FETCH_CHAR,
                  FETCH_SYMBOL,
                  FETCH_STRING,
};

struct fetch_type {
    const char *name;  /* as the user writes it */
    const char *field; /* the name of the type in the file `format` */
    uint8_t size;      /* bytes of one element in the fixed part */
    enum fetch_kind kind;
};

enum fetch_op {
    FETCH_END,
    FETCH_LOAD_REG,   /* value: offset in struct pt_regs */
    FETCH_LOAD_STACK, /* value: word number */
    FETCH_LOAD_SP,    /* the stack pointer itself */
    FETCH_LOAD_ARG,   /* value: the function's argument, from 0 */
    FETCH_LOAD_ENTRY, /* value: index among the words that were saved at the entry */
    FETCH_LOAD_NS,    /* nanoseconds since the entry; value: index of the saved time */
    FETCH_LOAD_DEPTH, /* depth of this call within a call of a function; value: its address */
    FETCH_LOAD_VALUE, /* value: the constant to load */
    FETCH_LOAD_ADDR,  /* the address that is watched */
    FETCH_LOAD_COMM,  /* the name of the thread */
    FETCH_LOAD_TEXT,  /* text: the text to store */
    FETCH_LOAD_AGENT, /* run a program of gdb, which lies @value instructions behind this
                       * instruction; len: bytes of the program */
    FETCH_NAME,       /* does nothing; text: the symbol of the address that the next
                       * instruction loads */
    FETCH_DEREF,      /* value: offset */
    FETCH_DEREF_USER, /* the same, in user memory */
    FETCH_STORE,      /* size: bytes of the value */
    FETCH_STORE_MEM,  /* value: offset; size: bytes from there */
    FETCH_STORE_MEM_USER,
    FETCH_STORE_STRING, /* value: offset */
    FETCH_STORE_STRING_USER,
    FETCH_STORE_SYMBOL, /* store the loaded address as text, "symbol+offset/size" */
    FETCH_BITS,         /* size: bytes of the container; value: low bit + (width << 8) */
    FETCH_REPEAT,       /* value: elements */
};

struct fetch_insn {
    uint8_t op;
    uint8_t size;
    uint16_t len; /* bytes of @text, which may have no NUL behind them */
    union {
        int64_t value;
        const char *text;
    };
};

/* One argument. After it has been compiled it is immutable. */
struct fetch_arg {
    const char *name;
    const char *text; /* as it was written, with its type */
    const struct fetch_type *type;
    const struct fetch_insn *code; /* ends with FETCH_END */
    uint32_t offset;               /* bytes from the first argument of the record */
    uint16_t count;                /* elements of the array; 0: not an array */
};

/* The sources that a program may read at a hit. */
struct fetch_from {
    const struct pt_regs *regs;
    uintptr_t ip; /* the address of the probed instruction, for programs of gdb */
    const uint64_t *entry; /* of a return probe: the words of fetch_entry(); else NULL */
    const char *comm;      /* the thread's name, or NULL */
    uintptr_t watched;     /* of a watch: its address */
    uint64_t time;         /* of a return probe: when the hit began, in ns */
    int (*depth)(uintptr_t function); /* of a return: kretprobe_depth(); else NULL */
    /* A return probe may have replaced the return address in @slot, a word of the stack.
     * Return: the program's own return address; 0: @slot was not replaced. If the
     *         function is NULL, no word of the stack was replaced.
     */
    uintptr_t (*returns)(const uintptr_t *slot);
    /* Copy @len bytes from @addr, which is an address in user memory if @user. Return: 0;
     * -EFAULT they cannot be read.
     */
    int (*read)(void *dst, uintptr_t addr, size_t len, bool user);
    symbol_text_t symbol; /* NULL: addresses are written as numbers */
};

/* The record that fetch_args() writes. */
struct fetch_to {
    uint8_t *record; /* its first byte */
    size_t size;     /* bytes that there is room for, at most 0xffff */
    size_t used;     /* bytes that are written */
    unsigned faults; /* values and strings that could not be read */
    unsigned cut;    /* strings that did not fit */
};

/* fetch_code_len - return the length of a program in instructions. If bytes of gdb lie
 * behind its end, these count as well. Context: any.
 */
size_t fetch_code_len(const struct fetch_insn *code);

/* fetch_type_find - find a type by its name. For a bit field (b4@0/8) it finds the type
 * of the container.
 * @name: @len bytes
 *
 * Return: the type; NULL: there is none.
 */
const struct fetch_type *fetch_type_find(const char *name, size_t len);

/* fetch_fixed_size - return the bytes that @arg takes in the fixed part. Context: any. */
size_t fetch_fixed_size(const struct fetch_arg *arg);

/* fetch_strings_size - return how many bytes the strings of @args take now. The caller
 * reserves a record of that size. A string may become longer before fetch_args() stores
 * it: that function cuts the string then. Context: any.  Cost: reads each string once.
 */
size_t fetch_strings_size(const struct fetch_arg *args, size_t count,
                          const struct fetch_from *from);

/* fetch_args - run the programs of @args and store the values that they fetch.
 * @head: bytes of the record before its first argument
 * @to:   @size must have room for the fixed part. Strings are stored behind it as far as
 *        there is room, each with a NUL. A value that cannot be read is stored as zeros.
 *        A string that cannot be read gets length 0, which is printed as (fault).
 *
 * Context: any.  Locks: none.
 * Cost:    one pass over the programs; no allocation, no loop without a bound.
 */
void fetch_args(const struct fetch_arg *args, size_t count, size_t head,
                const struct fetch_from *from, struct fetch_to *to);

/* fetch_entry - save arguments at the entry of a function, to be recorded at its return.
 * @numbers: the numbers of @count arguments, from 0; FETCH_ENTRY_TIME: the time
 * @saved:   one word for each of them
 *
 * Context: any.
 */
void fetch_entry(const uint16_t *numbers, size_t count, const struct fetch_from *from,
                 uint64_t *saved);

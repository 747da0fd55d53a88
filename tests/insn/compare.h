/* compare.h - compares the results of probes/insn and of Zydis for one instruction. Host
 * only.
 *
 * Every question is a fact. A fact has two counters: how often the question was asked,
 * and how often the two decoders differed without an explanation. It also has a few byte
 * sequences for which they differed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* clang-format off */
#define FACTS(X)                                                                         \
    X(LENGTH,    "the lengths agree where both decode")                                  \
    X(ACCEPT,    "what Zydis decodes is decoded, or its refusal explained")              \
    X(REFUSE,    "what Zydis refuses is refused, or its acceptance explained")           \
    X(SHORT,     "any shorter window asks for more bytes")                               \
    X(KIND,      "the kind is the one of Zydis's mnemonic")                              \
    X(MNEMONIC,  "the mnemonic is Zydis's, or another name of the same")                 \
    X(NAMED,     "only instructions of the system and the vector unit have no name")     \
    X(FIELDS,    "modrm, displacement and immediate lie where Zydis finds them")         \
    X(TARGET,    "branch and rip-relative targets agree")                                \
    X(ADDRESS,   "effective addresses agree")                                            \
    X(CONDITION, "conditions agree")                                                     \
    X(MEMORY,    "what accesses memory may fault")                                       \
    X(READ,      "registers and flags that are read are in the read set")                \
    X(WRITTEN,   "registers and flags that are written are in the written set")          \
    X(KILLED,    "the killed set is certainly written, entirely")                        \
    X(MOVED,     "a relocated copy means the same")                                      \
    X(OBJDUMP,   "lengths agree with objdump, or the difference is explained")
/* clang-format on */

#define FACT_ENUM(name, text) FACT_##name,
enum fact { FACTS(FACT_ENUM) FACT_COUNT };

/* compare_init - must be called once, before all other functions here. */
void compare_init(void);

/* compare_window - compare the instruction at the start of @bytes.
 * @bytes:  @avail readable bytes; at the end of readable memory, a read behind them
 *          faults
 * @seed:   chooses register values, and the address that a copy is moved to
 * Return:  the length that both decoders find; 0 if one of them refuses the bytes.
 */
size_t compare_window(const uint8_t *bytes, size_t avail, uintptr_t addr, uint64_t seed);

/* compare_objdump - compare @len bytes, which objdump prints as the instruction @text. */
void compare_objdump(const uint8_t *bytes, size_t len, uintptr_t addr, const char *text);

/* fact_count - count one more answer to @fact. If it does not hold, keep @bytes for the
 * report.
 */
void fact_count(enum fact fact, bool holds, const uint8_t *bytes, size_t len);

/* compare_report - print the facts as TAP lines, from number @first on, and as comments
 * the explanations that were used. Return: how many facts did not hold.
 */
int compare_report(int first);

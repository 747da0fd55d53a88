/* compare.h - one instruction, as probes/insn and as Zydis see it. Host only.
 *
 * Every question is a fact with two counters, how often it was asked and how often the
 * two disagreed without an explanation, and with a few byte sequences that showed it.
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

/* compare_init - once, before anything else. */
void compare_init(void);

/* compare_window - compare what lies at the start of @bytes.
 * @bytes:  @avail readable bytes, at the end of readable memory if that is to be shown
 * @seed:   picks register values and the place a copy is moved to
 * Return:  the length both see; 0 if either refuses.
 */
size_t compare_window(const uint8_t *bytes, size_t avail, uintptr_t addr, uint64_t seed);

/* compare_objdump - @len bytes that objdump prints as the instruction @text. */
void compare_objdump(const uint8_t *bytes, size_t len, uintptr_t addr, const char *text);

/* fact_count - one more answer to @fact; @bytes are shown if it does not hold. */
void fact_count(enum fact fact, bool holds, const uint8_t *bytes, size_t len);

/* compare_report - the facts as TAP lines from number @first on, and the explanations
 * that were used as comments. Return: how many facts did not hold.
 */
int compare_report(int first);

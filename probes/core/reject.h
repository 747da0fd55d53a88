/* reject.h - declares the reasons for which a request is refused. The errno, the console,
 * the error log and `probe explain` all come from the same reason. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* X(reason, errno, sentence) */
/* clang-format off */
#define PROBE_REASONS(X)                                                                 \
    X(OK,            0,             "the probe can be set")                              \
    X(MALFORMED,     EINVAL,        "give either a symbol or an address")                \
    X(BAD_FLAGS,     EINVAL,        "set DISABLED, IRQS_OFF, PENDING at most")           \
    X(TWO_HANDLERS,  EINVAL,        "a pre-handler or a light handler, not both")        \
    X(BAD_PROGRAM,   EINVAL,        "its program is not one, or it has handlers as well") \
    X(NOT_REGISTERED, EINVAL,       "this probe is not registered")                      \
    X(REGISTERED,    EEXIST,        "this probe is already registered")                  \
    X(NO_SYMBOL,     ENOENT,        "no symbol has this name")                           \
    X(NOT_UNIQUE,    EADDRNOTAVAIL, "several symbols have this name")                    \
    X(NO_FUNCTION,   ENOENT,        "the address is not inside any function")            \
    X(PAST_END,      ENOENT,        "the offset lies behind the end of the function")    \
    X(NOT_TEXT,      ENOENT,        "the address is not kernel text")                    \
    X(BLACKLISTED,   EPERM,         "this code is the way into a hit, or out of it") \
    X(ENTRY_CODE,    EPERM,         "entry code, before the registers are saved")        \
    X(OWN_CODE,      EPERM,         "code that the engine itself has made")              \
    X(NOT_BOUNDARY,  EILSEQ,        "not an instruction boundary")                       \
    X(UNDECODABLE,   EILSEQ,        "these bytes are no instruction")                    \
    X(FOREIGN_INT3,  EBUSY,         "a breakpoint that is not the engine's lies here")   \
    X(TRAP_INSN,     EILSEQ,        "a trap instruction cannot carry a probe")           \
    X(FAR_BRANCH,    EOPNOTSUPP,    "changes the code segment or the privilege level")   \
    X(MASKS_TRAPS,   EOPNOTSUPP,    "delays the next trap: loads the stack segment")     \
    X(STATE_CHANGE,  EOPNOTSUPP,    "changes processor state that a trap depends on")    \
    X(HALTS,         EOPNOTSUPP,    "a trap in front of it would end its wait")          \
    X(STI_HLT,       EOPNOTSUPP,    "sti right before hlt must not come apart")          \
    X(TRANSACTION,   EOPNOTSUPP,    "no trap survives inside a transaction")             \
    X(VIRTUALIZATION, EOPNOTSUPP,   "leaves for a hypervisor or an enclave")             \
    X(SHORT_OPERAND, EOPNOTSUPP,    "processors disagree on these prefixes")             \
    X(CANNOT_MOVE,   EOPNOTSUPP,    "means something else at another address")           \
    X(NO_STEP,       EOPNOTSUPP,    "no post-handler: it loads the table traps go by")   \
    X(OUT_OF_REACH,  ERANGE,        "its operand is out of reach from the slot")         \
    X(NO_ROOM,       E2BIG,         "its code does not fit into a slot")                 \
    X(NO_MEMORY,     ENOMEM,        "no memory")                                         \
    X(NO_SLOT,       ENOMEM,        "no executable memory for the copy")                 \
    X(NO_LANDING,    ERANGE,        "whatever jump fits here lands where no pad can be") \
    X(PADS_TAKEN,    EBUSY,         "whatever jump fits here lands on the pads of others") \
    X(NEXT_UNKNOWN,  EFAULT,        "the bytes behind it, a part of any jump, are unknown") \
    X(NO_PAGE,       ENOMEM,        "no memory for its landing pad")                     \
    X(FROM_HANDLER,  EDEADLK,       "called from a probe handler")                       \
    X(NOT_ENTRY,     EINVAL,        "not the entry of a function")                       \
    X(NO_HANDLER,    EINVAL,        "a jprobe is its handler")                           \
    X(HAS_JPROBE,    EEXIST,        "a function can have one jprobe")                    \
    X(SWITCHES_STACK, EOPNOTSUPP,   "returns on another stack than it was called on")    \
    X(POPS_ARGUMENTS, EOPNOTSUPP,   "a `ret` with an operand moves the stack on") \
    X(DATA_TOO_BIG,  E2BIG,         "more data for each instance than there is room for") \
    X(GONE,          EINVAL,        "the code it was on no longer exists")               \
    X(NO_TARGETS,    EOPNOTSUPP,    "where jumps lead into this code is not known")      \
    X(REGION_END,    EOPNOTSUPP,    "the function ends before the jump would")           \
    X(REGION_CHANGED, EOPNOTSUPP,   "this code is not as it was built")                  \
    X(REGION_MOVE,   EOPNOTSUPP,    "an instruction under the jump has to stay")         \
    X(REGION_CALL,   EOPNOTSUPP,    "a call would return to where the jump lies")        \
    X(REGION_TARGET, EOPNOTSUPP,    "something leads to where the jump would lie")       \
    X(REGION_OPAQUE, EOPNOTSUPP,    "anything might lead to where the jump would lie")   \
    X(REGION_PROBED, EEXIST,        "another probe is where the jump would lie")         \
    X(XMC_LENGTH,    EINVAL,        "1 to 15 bytes can be exchanged")                    \
    X(XMC_STORE,     EINVAL,        "a single store is 1, 2, 4 or 8 aligned bytes")        \
    X(XMC_CUT,       EILSEQ,        "the new bytes would end inside of an instruction")  \
    X(XMC_CODE,      EILSEQ,        "the new bytes are not whole instructions")          \
    X(XMC_SEVERAL,   EOPNOTSUPP,    "several instructions can only become one")          \
    X(XMC_PROBED,    EEXIST,        "a probe uses these bytes")                          \
    X(XMC_ENTERED,   EOPNOTSUPP,    "something leads between these instructions")        \
    X(BAD_CONTEXT,   EDEADLK,       "called where it would have to wait")
/* clang-format on */

#define PROBE_REASON_ENUM(name, err, why) PROBE_##name,
enum probe_reason { PROBE_REASONS(PROBE_REASON_ENUM) PROBE_REASON_COUNT };

struct probe_reject {
    int err;                  /* negative errno */
    enum probe_reason reason; /* the broken rule */
    uintptr_t at;    /* the offending instruction or address, 0 if there is none */
    const char *why; /* one fixed sentence; never freed */
    size_t index;    /* of the refused probe in its set, from 0 */
};

/* A function that is called for each rule: @why->err is 0 if the rule is kept. */
typedef void (*rule_told_t)(enum probe_reason rule, const struct probe_reject *why,
                            void *arg);

/* probe_refuse - fill @out (may be NULL) for @reason at @at.
 * Context: any.  Return: the errno of @reason, negative, so that a check can `return` it.
 */
int probe_refuse(struct probe_reject *out, enum probe_reason reason, uintptr_t at);

/* probe_reason_name - "NOT_BOUNDARY". probe_reason_text - its sentence. Context: any. */
const char *probe_reason_name(enum probe_reason reason);
const char *probe_reason_text(enum probe_reason reason);

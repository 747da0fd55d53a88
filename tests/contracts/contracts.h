/* contracts.h - what a contract block says of a function, for an image that checks it. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of contract_alternative.in: WORDS of contracts.py. */
enum contract_word {
    CONTRACT_BOOT,
    CONTRACT_THREAD,
    CONTRACT_IRQ,
    CONTRACT_TRAP,
    CONTRACT_NMI,
    CONTRACT_HELD,
    CONTRACT_STOPPED,
    CONTRACT_PANIC,
};

/* Bits of contract_alternative.when: CHECKED. */
enum contract_condition {
    CONTRACT_INTERRUPTS_ON,
    CONTRACT_INTERRUPTS_OFF,
    CONTRACT_PREEMPTIBLE,
    CONTRACT_PREEMPTION_OFF,
    CONTRACT_ALL_ONLINE,
    CONTRACT_ONE_CPU,
    CONTRACT_NO_HANDLER,
    CONTRACT_INTERRUPTS_ANY, /* in a thread: on, unless the block says something */
};

/* Bits of contract.held and contract.free: ASKED. */
enum contract_lock {
    CONTRACT_PLAT_PROBES,
    CONTRACT_PLAT_TEXT,
    CONTRACT_TRACE,
    CONTRACT_VFS,
    CONTRACT_SCHED,
};

enum contract_moment {
    CONTRACT_BOOT_ENDS = 1,
    CONTRACT_CHECKS_END,
    CONTRACT_TAKES_MUTEX,    /* its first argument */
    CONTRACT_WAITS_FOR_HOST, /* perhaps for ever */
};

struct contract {
    const char *name, *words;
    struct contract_alternative {
        uint16_t in, when;
    } alternatives[4]; /* an empty one is none */
    struct contract_range {
        const char *name; /* NULL: there is none */
        unsigned number;  /* of the parameter */
        int64_t first, last;
    } ranges[2];
    uint8_t held, free;
    bool waits, asks_stopped;
    uint8_t moment;
};

/* contract_rules - all of them; contract_enter gets the number of one from a thunk. */
extern const struct contract contract_rules[];

/* contract_check - panic unless rule @number holds for the function that @caller calls now.
 * @arguments: its first six
 */
void contract_check(unsigned number, uintptr_t caller, const uint64_t arguments[6]);

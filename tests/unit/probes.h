/* probes.h - functions to register a probe and look at the text. */
#pragma once

#include "probes/core/life.h"
#include "tests/unit/port_fake.h"

static struct probe_reject why; /* of the last registration */

static inline int add(struct kprobe *p)
{
    why = (struct probe_reject){ 0 };
    return register_kprobe_why(p, &why);
}

#define CHECK_REFUSED(p, reason_name)                                                    \
    do {                                                                                 \
        CHECK(add(p) < 0);                                                               \
        CHECK_STR(probe_reason_name(why.reason), #reason_name);                          \
        CHECK((p)->site == NULL);                                                        \
    } while (0)

static inline uint8_t byte_at(uintptr_t addr)
{
    return *(const uint8_t *)addr;
}

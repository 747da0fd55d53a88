/* filter_parts.h - a compiled filter, as its parser and its evaluator see it. */
#pragma once

#include "probes/trace/filter.h"

enum filter_op {
    FILTER_GLOB,
    FILTER_NE,
    FILTER_EQ,
    FILTER_LE,
    FILTER_LT,
    FILTER_GE,
    FILTER_GT,
    FILTER_AND,
    FILTER_WITHIN, /* [value, end): written `FIELD.function == F` */
    FILTER_CPUS,   /* value has a bit for each: written `FIELD & CPUS{LIST}` */
    FILTER_OPS
};

/* Where a comparison leads. */
#define FILTER_YES 0xfffeu
#define FILTER_NO 0xffffu

/* One comparison, and which is the next when it holds, or does not. */
struct filter_step {
    struct filter_field field; /* its name is not kept */
    enum filter_op op;
    bool negate;      /* the answer of the comparison */
    bool of_function; /* `.function` stands behind the field */
    uint16_t
        next[2]; /* [1] when it holds, [0] when not: a step, FILTER_YES or FILTER_NO */
    union {
        uint64_t value;
        const char *pattern; /* with a NUL */
    };
    uint64_t end; /* of FILTER_WITHIN */
};

struct filter {
    const char *text;
    size_t count; /* at least one step */
    struct filter_step step[];
};

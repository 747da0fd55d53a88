/* filter_parts.h - the layout of a compiled filter, for its parser and its evaluator. */
#pragma once

#include "probes/trace/language/filter.h"

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
    FILTER_CPUS,   /* value: a bit for each CPU; written `FIELD & CPUS{LIST}` */
    FILTER_OPS
};

/* Values of filter_step.next that end the evaluation. */
#define FILTER_YES 0xfffeu
#define FILTER_NO 0xffffu

/* One comparison, and the steps that follow it. */
struct filter_step {
    struct filter_field field; /* its name is NULL */
    enum filter_op op;
    bool negate;      /* the step holds if the comparison does not */
    bool of_function; /* `.function` stands behind the field */
    uint16_t next[2]; /* [this step holds]: a step, FILTER_YES or FILTER_NO */
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

/* churn.h - sets and removes probes in random order, and plans each change by itself.
 * Host only.
 */
#pragma once

#include "tests/pun/image.h"

struct churn_result {
    size_t armed;    /* probes when all are set */
    size_t jumps;    /* how many of these are jumps */
    size_t changes;  /* batches */
    size_t members;  /* of all batches together */
    size_t most;     /* members of the largest batch */
    size_t evicted;  /* evicted neighbours when all probes are set */
    size_t lost;     /* jumps that became int3s when other probes were set or removed */
    size_t problems; /* plans that do not lead where they say, and data left at the end */
};

/* churn_run - set probes at every @step-th instruction of @image, in groups of @at_once
 * neighbours, in random order. Then remove the probes one by one, in another random
 * order, and check that the text is as it was built.
 */
struct churn_result churn_run(const struct image *image, size_t step, size_t at_once);

/* churn.h - probes that come and go in random order, each change planned for itself. Host
 * only.
 */
#pragma once

#include "tests/pun/image.h"

struct churn_result {
    size_t armed;    /* probes there at the end of the way up */
    size_t jumps;    /* of these, the ones that are jumps */
    size_t changes;  /* batches planned */
    size_t members;  /* in all of them */
    size_t most;     /* in one of them */
    size_t evicted;  /* neighbours that are jumps at the end of the way up */
    size_t lost;     /* jumps that became int3s when others came or went */
    size_t problems; /* plans that were not what they say */
};

/* churn_run - set probes at every @step-th instruction of @image, groups of @at_once
 * neighbours in random order; take them out again one by one, in another order. Afterwards
 * the text is as it was built.
 */
struct churn_result churn_run(const struct image *image, size_t step, size_t at_once);

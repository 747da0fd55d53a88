/* qsort.c - sort and search arrays of elements of any type. Owns nothing, runs anywhere.
 *
 * The sort is heapsort. It needs no memory and no recursion, and no input makes it slow.
 * For small stacks this matters more than the usual speed of quicksort. Many tables are
 * sorted already; such an array costs one comparison for each element.
 */
#include "libc/include/stdlib.h"

#include <stdbool.h>

struct array {
    uint8_t *base;
    size_t size; /* of an element */
    int (*compare)(const void *, const void *);
};

static void swap_elements(const struct array *a, size_t i, size_t j)
{
    uint8_t *x = a->base + i * a->size;
    uint8_t *y = a->base + j * a->size;
    uint64_t word, other;
    size_t k = 0;

    for (; a->size - k >= sizeof(word); k += sizeof(word)) {
        __builtin_memcpy(&word, x + k, sizeof(word));
        __builtin_memcpy(&other, y + k, sizeof(word));
        __builtin_memcpy(x + k, &other, sizeof(word));
        __builtin_memcpy(y + k, &word, sizeof(word));
    }
    for (; k < a->size; k++) {
        uint8_t byte = x[k];

        x[k] = y[k];
        y[k] = byte;
    }
}

static bool is_before(const struct array *a, size_t i, size_t j)
{
    return a->compare(a->base + i * a->size, a->base + j * a->size) < 0;
}

static bool is_array_sorted(const struct array *a, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (is_before(a, i, i - 1))
            return false;
    return true;
}

/* The subtrees below @parent are heaps already. Move the element of @parent down until no
 * child of it is greater.
 */
static void sift_down(const struct array *a, size_t parent, size_t count)
{
    for (;;) {
        size_t child = 2 * parent + 1;

        if (child >= count)
            return;
        if (child + 1 < count && is_before(a, child, child + 1))
            child++;
        if (!is_before(a, parent, child))
            return;
        swap_elements(a, parent, child);
        parent = child;
    }
}

void qsort(void *base, size_t count, size_t size,
           int (*compare)(const void *, const void *))
{
    struct array a = { base, size, compare };

    if (is_array_sorted(&a, count))
        return;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(&a, i, count);
    while (count > 1) {
        count--;
        swap_elements(&a, 0,
                      count); /* the greatest element of the heap goes behind the heap */
        sift_down(&a, 0, count);
    }
}

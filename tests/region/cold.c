/* cold.c - a function with a branch into its middle that is not in the function itself.
 * gcc -O2 moves the unlikely part of retry() far away, into retry.cold, and that part
 * jumps back into the middle. The target is two bytes behind the start of an instruction.
 * So a jump of five bytes at that instruction would be wrong.
 */
struct device {
    unsigned status;
    unsigned errors;
};

void device_reset(struct device *d) __attribute__((cold, noinline));

__attribute__((noinline)) unsigned retry(struct device *d, unsigned count)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned worth = d[i].errors;

        if (__builtin_expect(d[i].status > 7, 0)) {
            device_reset(&d[i]);
            worth = 3;
        } else {
            worth *= worth;
        }
        sum ^= worth;
    }
    return sum;
}

void device_reset(struct device *d)
{
    d->status = 0;
}

unsigned _start(struct device *d)
{
    return retry(d, d->errors);
}

/* cold.c - a function whose unlikely part jumps back into the middle of it: gcc -O2 moves
 * that part far away, into retry.cold, and looking at the function itself does not show
 * that its middle is entered, two bytes behind an instruction that is shorter than a jump.
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

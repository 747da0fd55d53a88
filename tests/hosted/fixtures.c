/* fixtures.c - fixtures in C, for code as a compiler makes it; see fixtures.asm. */
#include "tests/hosted/fixture.h"

#include <string.h>

uint64_t fixture_data[64];

#define WORDS 16 /* words of the memory that are used; few, as instructions may trap */

/* Prototypes for the compiler. The tests find these functions by the symbol table. */
void fx_c_sort(uint64_t *mem);
void fx_c_crc(uint64_t *mem);
void fx_c_switch(uint64_t *mem);
void fx_c_text(uint64_t *mem);
void fx_c_fibonacci(uint64_t *mem);
void fx_c_float(uint64_t *mem);
void fx_c_pointers(uint64_t *mem);
void fx_c_copy(uint64_t *mem);

static NOINLINE void quicksort(uint64_t *a, long from, long to)
{
    long i = from, j = to;
    uint64_t pivot = a[(from + to) / 2];

    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            uint64_t t = a[i];

            a[i++] = a[j];
            a[j--] = t;
        }
    }
    if (from < j)
        quicksort(a, from, j);
    if (i < to)
        quicksort(a, i, to);
}

void fx_c_sort(uint64_t *mem)
{
    quicksort(mem, 0, WORDS - 1);
}

void fx_c_crc(uint64_t *mem)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < WORDS; i++) {
        crc ^= ((const uint8_t *)mem)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    mem[0] = ~crc;
}

static NOINLINE uint64_t operate(unsigned op, uint64_t a, uint64_t b)
{
    switch (op) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return a / (b | 1);
    case 4:
        return a % (b | 1);
    case 5:
        return a << (b & 63);
    case 6:
        return a >> (b & 63);
    case 7:
        return a & b;
    case 8:
        return a | b;
    default:
        return a ^ b;
    }
}

void fx_c_switch(uint64_t *mem)
{
    uint64_t x = mem[0];

    for (size_t i = 1; i < WORDS; i++)
        x = operate((unsigned)(mem[i] % 12), x, mem[i]);
    mem[0] = x;
}

static NOINLINE char *put_number(char *out, uint64_t value, unsigned base)
{
    char digits[64];
    size_t n = 0;

    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n)
        *out++ = digits[--n];
    return out;
}

void fx_c_text(uint64_t *mem)
{
    char *out = (char *)(mem + 8);

    for (size_t i = 0; i < 2; i++) {
        out = put_number(out, mem[i], i % 2 ? 10 : 16);
        *out++ = ' ';
    }
    *out = '\0';
}

static NOINLINE uint64_t fibonacci(uint64_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

void fx_c_fibonacci(uint64_t *mem)
{
    mem[0] = fibonacci(mem[0] % 7);
}

void fx_c_float(uint64_t *mem)
{
    double sum = 0, x = (double)(mem[0] & 0xffff) / 1000;

    for (int i = 1; i < 5; i++)
        sum += x / i - (double)(float)(sum / (x + i));
    memcpy(mem, &sum, sizeof(sum));
    mem[1] = sum > x ? 1 : sum == x ? 2 : 3;
}

static NOINLINE uint64_t add_op(uint64_t a, uint64_t b)
{
    return a + b;
}

static NOINLINE uint64_t xor_op(uint64_t a, uint64_t b)
{
    return a ^ b;
}

static uint64_t (*const ops[])(uint64_t a, uint64_t b) = { add_op, xor_op };

void fx_c_pointers(uint64_t *mem)
{
    uint64_t x = 0;

    for (size_t i = 0; i < WORDS; i++)
        x = ops[mem[i] & 1](x, mem[i]);
    mem[0] = x;
}

void fx_c_copy(uint64_t *mem)
{
    struct {
        uint64_t words[WORDS];
    } a, b;

    memcpy(&a, mem, sizeof(a));
    b = a;
    for (size_t i = 0; i < WORDS; i++)
        b.words[i] += a.words[WORDS - 1 - i];
    memcpy(mem, &b, sizeof(b));
}

/* check_zydis.c - compares probes/insn with Zydis and objdump, for real programs and
 * random bytes.
 *
 *     check_zydis [-x] [-n WINDOWS] [-s SEED] [FILE...]
 *
 * It compares every instruction that objdump finds in the FILEs, and then WINDOWS windows
 * of random or mutated bytes, each at the end of readable memory. With -x it also
 * compares every opcode with every modrm. The output is TAP. The exit status is 1 if a
 * difference is not explained.
 */
#include "tests/insn/compare.h"

#include "probes/insn/insn.h"
#include "tests/insn/sweep.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POOL_COUNT 65536

static uint64_t random_state;
static uint8_t pool[POOL_COUNT][INSN_MAX_LEN]; /* real instructions, to be mutated */
static unsigned long pool_seen;

static uint64_t random_next(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void pool_add(const uint8_t *bytes, size_t len)
{
    uint64_t slot = pool_seen < POOL_COUNT ? pool_seen : random_next() % (pool_seen + 1);

    pool_seen++;
    if (slot < POOL_COUNT)
        memcpy(pool[slot], bytes, len);
}

/* line_compare - compare the instruction in a line of objdump: "  addr:\tbytes
 * \tmnemonic".
 */
static void line_compare(char *line)
{
    uint8_t bytes[32];
    size_t len = 0;
    char *p, *end;
    uintptr_t addr = strtoull(line, &end, 16);

    if (end == line || *end != ':' || end[1] != '\t')
        return;
    for (p = end + 2; len < sizeof(bytes); p = end) {
        unsigned long byte = strtoul(p, &end, 16);

        if (end != p + 2 || byte > 255)
            break;
        bytes[len++] = (uint8_t)byte;
        end++; /* the blank behind it */
    }
    p = strchr(p, '\t');
    if (!p || len == 0)
        return;
    p[strcspn(p, "\n")] = 0;
    p[1 + strcspn(p + 1, "#")] = 0;
    for (end = p + strlen(p); end > p + 1 && end[-1] == ' ';)
        *--end = 0;
    compare_objdump(bytes, len, addr, p + 1);
    if (len <= INSN_MAX_LEN)
        pool_add(bytes, len);
}

static int file_compare(const char *path)
{
    char command[1024], *line = NULL;
    unsigned long before = pool_seen;
    size_t cap = 0;
    FILE *objdump;

    snprintf(command, sizeof(command),
             "objdump -d -w -M intel64,suffix --insn-width=32 '%s'", path);
    objdump = popen(command, "r");
    if (!objdump)
        return 1;
    while (getline(&line, &cap, objdump) > 0)
        line_compare(line);
    free(line);
    printf("# %s: %lu instructions\n", path, pool_seen - before);
    fflush(stdout);
    return pclose(objdump) != 0 || pool_seen == before;
}

/* edge_map - map a page with an unreadable page behind it.
 * Return: the end of the page, where the windows end.
 */
static uint8_t *edge_map(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE)) {
        perror("mmap");
        exit(2);
    }
    return p + page;
}

static size_t prefixes_make(uint8_t *bytes)
{
    static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x67, 0x2e, 0x36, 0x3e,
                                        0x26, 0x64, 0x65, 0xf0, 0x48, 0x41, 0x4f };
    size_t count = random_next() & 3, i;

    for (i = 0; i < count; i++)
        bytes[i] = prefixes[random_next() % sizeof(prefixes)];
    return i;
}

/* map_make - let @bytes begin with the escape bytes of a random opcode map, so that
 * windows of every map are tried.
 */
static void map_make(uint8_t *bytes)
{
    size_t at = prefixes_make(bytes);
    uint64_t pick = random_next();

    switch (pick & 7) {
    case 0:
    case 1:
        bytes[at] = 0x0f;
        break;
    case 2:
        bytes[at++] = 0x0f;
        bytes[at] = pick & 8 ? 0x38 : 0x3a;
        break;
    case 3:
        bytes[0] = 0xc4;
        bytes[1] = (uint8_t)((pick >> 8 & 0xe0) | (pick >> 4 & 3));
        break;
    case 4:
        bytes[0] = 0x62;
        bytes[1] = (uint8_t)((pick >> 8 & 0xf0) | (pick >> 4 & 7));
        bytes[2] |= 4;
        break;
    case 5:
        bytes[0] = 0x8f;
        bytes[1] = (uint8_t)((pick >> 8 & 0xe0) | (8 + (pick >> 4 & 3)));
        break;
    default:
        break;
    }
}

static void mutate(uint8_t *bytes)
{
    uint8_t prefixes[INSN_MAX_LEN];
    size_t count;

    if (!pool_seen)
        return;
    memcpy(bytes, pool[random_next() % (pool_seen < POOL_COUNT ? pool_seen : POOL_COUNT)],
           INSN_MAX_LEN);
    for (count = random_next() % 4; count > 0; count--)
        bytes[random_next() % 8] ^= (uint8_t)(1 << (random_next() & 7));
    count = prefixes_make(prefixes);
    memmove(bytes + count, bytes, INSN_MAX_LEN - count);
    memcpy(bytes, prefixes, count);
}

/* window_compare - compare a window of 1..17 bytes that ends at @edge. */
static void window_compare(uint8_t *edge)
{
    uint8_t bytes[24];
    uint64_t pick = random_next();
    size_t len = pick & 1 ? INSN_MAX_LEN : 1 + (pick >> 8) % 17;
    uintptr_t addr = pick & 2 ? 0xffffffff80000000 + (pick >> 34) : pick >> 17;

    for (size_t i = 0; i < sizeof(bytes); i += 8) {
        uint64_t r = random_next();

        memcpy(bytes + i, &r, 8);
    }
    if ((pick & 12) == 4)
        map_make(bytes);
    else if (pick & 8)
        mutate(bytes);
    memcpy(edge - len, bytes, len);
    compare_window(edge - len, len, addr, random_next());
}

int main(int argc, char **argv)
{
    unsigned long windows = 200000;
    uint64_t seed = (uint64_t)time(NULL);
    uint8_t *edge = edge_map();
    int failed = 0, number = 0, opt;
    bool sweep = false;

    while ((opt = getopt(argc, argv, "xn:s:")) != -1) {
        if (opt == 'n')
            windows = strtoul(optarg, NULL, 0);
        else if (opt == 'x')
            sweep = true;
        else if (opt == 's')
            seed = strtoull(optarg, NULL, 0);
        else
            return 2;
    }
    random_state = seed;
    printf("# seed %llu\n", (unsigned long long)seed);
    compare_init();
    for (int i = optind; i < argc; i++) {
        int err = file_compare(argv[i]);

        printf("%s %d - every instruction of %s was looked at\n", err ? "not ok" : "ok",
               ++number, argv[i]);
        failed += err;
    }
    if (sweep)
        printf("ok %d - every opcode with every modrm: %lu windows\n", ++number,
               sweep_all(edge));
    for (unsigned long i = 0; i < windows; i++)
        window_compare(edge);
    printf("ok %d - %lu windows, none read past its end\n", ++number, windows);
    failed += compare_report(number + 1);
    printf("1..%d\n", number + FACT_COUNT);
    return failed ? 1 : 0;
}

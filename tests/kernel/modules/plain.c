/* plain.c - a module without constructor and destructor, which has tables and relocations
 * of each kind. Tests damage copies of its file, and load these.
 */
#include "kernel/base/compiler.h"
#include "kernel/debug/log.h"
#include "kernel/debug/marker.h"

long plain_number;
long plain_switch(long a);
void plain_marked(void);

static const char *const words[] = { "one", "two", "three" };
static long (*const self)(long) = plain_switch;

long plain_switch(long a)
{
    switch (a) {
    case 0:
        return self == plain_switch;
    case 1:
        return words[a][0];
    case 2:
        return plain_number++;
    case 3:
        log_info("%s", words[2]);
        return 7;
    case 4:
        MARK(plain, "a %ld", a);
        return a * 3;
    default:
        return -a;
    }
}

NOINLINE void plain_marked(void)
{
    plain_number = 3;
}
NOKPROBE(plain_marked);

/* native.c - decode.c as a program of the host: reads lines of hexadecimal digits, and prints
 * what decode() makes of each.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

uint8_t *decode_input(void);
const char *decode_output(void);
unsigned decode_max(void);
void decode(unsigned len, int may_evict);

int main(void)
{
    char line[2048];

    while (fgets(line, sizeof(line), stdin)) {
        unsigned len = 0, byte;

        for (const char *at = line; len < decode_max() && sscanf(at, "%2x", &byte) == 1;
             at += 2)
            decode_input()[len++] = (uint8_t)byte;
        decode(len, 1);
        fputs(decode_output(), stdout);
        puts("");
    }
    return 0;
}

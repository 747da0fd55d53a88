/* bad_key.c - a module with a static key that is a function. */
long bad_key(long a);

long bad_key(long a)
{
    __asm__ volatile("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
                     ".pushsection .static_keys, \"a\"\n\t"
                     ".balign 8\n\t"
                     ".quad 1b, 1b, bad_key\n\t"
                     ".popsection");
    return a;
}

/* grader_program.c - finds the code of programs that this machine has. */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Map the code of a program. Return the number of bytes; 0: there is no such program. */
static size_t text_of(const char *path, const uint8_t **code)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    const Elf64_Phdr *part;
    const Elf64_Ehdr *elf;
    struct stat stat;

    if (file < 0 || fstat(file, &stat))
        return 0;
    elf = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (elf == MAP_FAILED || memcmp(elf->e_ident, ELFMAG, SELFMAG))
        return 0;
    part = (const void *)((const uint8_t *)elf + elf->e_phoff);
    for (unsigned i = 0; i < elf->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_X) {
            *code = (const uint8_t *)elf + part[i].p_offset;
            return part[i].p_filesz;
        }
    return 0;
}

size_t lab_program(unsigned nth, const uint8_t **code)
{
    static const char *const paths[] = { "/bin/bash", "/usr/bin/git", "/usr/bin/python3",
                                         "/bin/ls",   "/usr/bin/gcc", "/proc/self/exe" };
    const unsigned count = sizeof(paths) / sizeof(paths[0]);
    size_t size = 0;

    while (!size)
        size = text_of(paths[nth++ % count], code);
    return size;
}

/* string.h - bytes and strings, as C11 "String handling <string.h>" has them, plus
 * strnlen and strsep as POSIX and BSD have them.
 *
 * No function here keeps state, allocates, or reads behind the end of what it is given. All
 * of them may carry probes, so code that runs in a hit does not call them.
 *
 * Context: any.
 */
#pragma once

#include "libc/include/extra.h"

#include <stddef.h>

void *memcpy(void *restrict dst, const void *restrict src, size_t len);
void *memmove(void *dst, const void *src, size_t len);
void *memset(void *dst, int byte, size_t len);
int memcmp(const void *a, const void *b, size_t len);
void *memchr(const void *mem, int byte, size_t len);

size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max_len);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t max_len);
char *strcpy(char *restrict dst, const char *restrict src);

char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *wanted);
size_t strspn(const char *s, const char *accept);
size_t strcspn(const char *s, const char *reject);
char *strpbrk(const char *s, const char *accept);
/* strsep - cut the next field off *@rest: replace the first character that is in @delims by
 * a NUL, which ends the field.
 * @rest: the string to cut; on return the text behind this NUL, or NULL if no character of
 *        @delims was found
 *
 * Return: the field, which may be empty; NULL when *@rest is NULL.
 */
char *strsep(char **rest, const char *delims);

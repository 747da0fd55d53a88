/* libc_rename.h - renames our C library, so that it can be in one program with the
 * host's: memcpy becomes our_memcpy, and so on for every name that the host has, too.
 *
 * libc/ is compiled for the host with `-include tests/unit/libc_rename.h`; its tests get
 * the declarations from libc_ours.h. With LIBC_RENAME_END this header undefines the names
 * again; that also removes macros of the same names from host headers. Names that only
 * our library has (libc/include/extra.h) stay as they are. There is no `#pragma once`,
 * because libc_ours.h includes this header several times.
 */

#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strcpy
#undef strchr
#undef strrchr
#undef strstr
#undef strspn
#undef strcspn
#undef strpbrk
#undef strsep

#undef snprintf
#undef vsnprintf

#undef strtol
#undef strtoll
#undef strtoul
#undef strtoull
#undef qsort

#undef isalnum
#undef isalpha
#undef isblank
#undef iscntrl
#undef isdigit
#undef isgraph
#undef islower
#undef isprint
#undef ispunct
#undef isspace
#undef isupper
#undef isxdigit
#undef tolower
#undef toupper

#ifndef LIBC_RENAME_END

#define memcpy our_memcpy
#define memmove our_memmove
#define memset our_memset
#define memcmp our_memcmp
#define memchr our_memchr
#define strlen our_strlen
#define strnlen our_strnlen
#define strcmp our_strcmp
#define strncmp our_strncmp
#define strcpy our_strcpy
#define strchr our_strchr
#define strrchr our_strrchr
#define strstr our_strstr
#define strspn our_strspn
#define strcspn our_strcspn
#define strpbrk our_strpbrk
#define strsep our_strsep

#define snprintf our_snprintf
#define vsnprintf our_vsnprintf

#define strtol our_strtol
#define strtoll our_strtoll
#define strtoul our_strtoul
#define strtoull our_strtoull
#define qsort our_qsort

#define isalnum our_isalnum
#define isalpha our_isalpha
#define isblank our_isblank
#define iscntrl our_iscntrl
#define isdigit our_isdigit
#define isgraph our_isgraph
#define islower our_islower
#define isprint our_isprint
#define ispunct our_ispunct
#define isspace our_isspace
#define isupper our_isupper
#define isxdigit our_isxdigit
#define tolower our_tolower
#define toupper our_toupper

#endif

/* stdio.h - print into a buffer: the part of C11 "Input/output <stdio.h>" that needs no
 * files.
 *
 * A format may have: flags - + space # 0, width, precision, * for both, lengths hh h l ll
 * z t j, conversions d i u x X o c s p %. %p prints 0x and hexadecimal digits, also for
 * NULL; %s prints (null) for NULL; an unknown conversion is printed unchanged. There is
 * no floating point, because the kernel does not use the registers for it, and there is
 * no %n.
 */
#pragma once

#include "libc/include/extra.h"

#include <stdarg.h>
#include <stddef.h>

/* snprintf, vsnprintf - print into a buffer, always with a NUL at the end of the text.
 * @size: bytes of @buf; with 0 nothing is written and @buf may be NULL
 *
 * Context: any.
 * Return:  the length of the whole text in bytes, without its NUL. If it is @size or more,
 *          the text was cut. -ERANGE: the length is more than INT_MAX; the text was cut.
 */
int snprintf(char *buf, size_t size, const char *fmt, ...) PRINTF(3, 4);
int vsnprintf(char *buf, size_t size, const char *fmt, va_list list) PRINTF(3, 0);

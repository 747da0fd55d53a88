/* ctype.h - what kind of character, as C11 "Character handling <ctype.h>" has it for
 * ASCII: from 128 on, and for EOF, the answer is always no.
 *
 * @c: a character as unsigned char, or EOF. A plain char is negative from 128 on and is
 *     then, unlike in other libraries, harmless.
 *
 * Context: any.
 * Return:  not 0 for yes; toupper and tolower return @c where there is no other case.
 */
#pragma once

int isalnum(int c);
int isalpha(int c);
int isblank(int c);
int iscntrl(int c);
int isdigit(int c);
int isgraph(int c);
int islower(int c);
int isprint(int c);
int ispunct(int c);
int isspace(int c);
int isupper(int c);
int isxdigit(int c);
int tolower(int c);
int toupper(int c);

/* ctype.h - the classes of characters, as C11 "Character handling <ctype.h>" defines them
 * for ASCII. Characters from 128 on, and EOF, are in no class.
 *
 * @c: any int. A negative char, which other libraries do not allow, is in no class
 *
 * Context: any.
 * Return:  not 0: @c is in the class. toupper and tolower return @c if it has no other case.
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

/* shell_machine.h - parses the requests of tools, and formats the replies.
 *
 *     @TAG COMMAND         a request; TAG is a decimal number
 *     #TAG|text            one line of output
 *     #TAG~text            the end of an output that does not end in a line feed
 *     #TAG=N NAME          the end of the reply, with an errno and its symbol, or 0 OK
 */
#pragma once

#include "kernel/fs/seq.h"

#include <stddef.h>

#define MACHINE_TAG_MAX 20    /* digits */
#define MACHINE_STATUS_MAX 64 /* bytes of the last line of a reply, its NUL included */

struct machine_request {
    char tag[MACHINE_TAG_MAX + 1];
    char *command; /* the rest of the line */
};

/* machine_parse - split a request into TAG and COMMAND.
 * @line:  @len bytes and a NUL, without the line feed
 *
 * Return:  0; -EINVAL no '@', no TAG, or no blank behind it: @out is not valid; -EILSEQ
 *          the TAG is valid, but a NUL inside the line hides the end of the command.
 */
int machine_parse(char *line, size_t len, struct machine_request *out);

/* machine_escape - append @len bytes of text in the form that a reply has: '\' as "\\",
 * and bytes outside of 0x20..0x7e, except TAB, as "\xHH".
 */
void machine_escape(struct seq *out, const char *text, size_t len);

/* machine_format_line - append a complete reply line.
 * @kind:  '|' or '~'
 */
void machine_format_line(struct seq *out, const char *tag, char kind, const char *text,
                         size_t len);

/* machine_format_status - write the last line of a reply into @buf.
 * @status:  0 or a negative errno
 *
 * Return:  its length.
 */
size_t machine_format_status(char buf[MACHINE_STATUS_MAX], const char *tag, int status);

/* machine_unescape - replace each "\xHH" of @text by the byte 0xHH; all other text stays.
 * @out:  as long as @text; may be @text itself
 *
 * Return:  bytes in @out.
 */
size_t machine_unescape(char *out, const char *text);

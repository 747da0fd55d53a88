/* proc.h - the files of /proc, which show the state of the kernel. */
#pragma once

/* linux_proc_banner - the text of /proc/version without its line feed. It has the name of
 * Linux's symbol, because tools look for this name.
 */
extern const char linux_proc_banner[];

/* proc_init - add the files of /proc to the tree.
 * @cmdline:  the boot arguments, borrowed for ever; NULL: none
 *
 * Context: boot, after vfs_init().
 * Return:  0; -ENOMEM.
 */
int proc_init(const char *cmdline);

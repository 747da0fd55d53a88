/* proc.h - /proc: what the kernel says about itself. */
#pragma once

/* linux_proc_banner - the text of /proc/version without its line feed. The name is the one
 * that tools look for.
 */
extern const char linux_proc_banner[];

/* proc_init - put the files of /proc into the tree.
 * @cmdline:  the boot arguments, borrowed for ever; NULL: none
 *
 * Context: boot, after vfs_init().
 * Return:  0; -ENOMEM.
 */
int proc_init(const char *cmdline);

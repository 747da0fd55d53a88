/* proc_cpu.h - the files of /proc about CPUs; only proc.c includes it. */
#pragma once

#include "kernel/fs/seq.h"

/* proc_cpuinfo_show, proc_interrupts_show - print the whole file; see struct vfs_file.
 * @priv is not used. Return: 0.
 */
int proc_cpuinfo_show(struct seq *s, void *priv);
int proc_interrupts_show(struct seq *s, void *priv);

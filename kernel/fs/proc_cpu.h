/* proc_cpu.h - the files of /proc that are about CPUs; for proc.c only. */
#pragma once

#include "kernel/fs/seq.h"

/* Both print a whole file and return 0; see struct vfs_file. @priv is not used. */
int proc_cpuinfo_show(struct seq *s, void *priv);
int proc_interrupts_show(struct seq *s, void *priv);

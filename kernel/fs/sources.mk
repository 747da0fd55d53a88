FS := \
    kernel/fs/vfs.c \
    kernel/fs/vfs_node.c \
    kernel/fs/vfs_tree.c \
    kernel/fs/seq.c \
    kernel/fs/proc.c \
    kernel/fs/proc_cpu.c

MM := \
    kernel/mm/free_set.c \
    kernel/mm/frame.c \
    kernel/mm/paging.c \
    kernel/mm/paging_change.c \
    kernel/mm/paging_init.c \
    kernel/mm/area.c \
    kernel/mm/vmap.c \
    kernel/mm/stack.c \
    kernel/mm/exec.c \
    kernel/mm/exec_frame.c \
    kernel/mm/exec_poke.c \
    kernel/mm/window.c \
    kernel/mm/heap_core.c \
    kernel/mm/heap.c \
    kernel/mm/extable.c \
    kernel/mm/copy_nofault.asm

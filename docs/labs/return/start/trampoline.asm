; trampoline.asm - the code to which a followed function returns.
; In:  rax, rdx, xmm0, xmm1: its return values; rsp: the word above its return address

    bits 64
    section .text

    global return_trampoline
return_trampoline:
    ud2

    section .note.GNU-stack noalloc noexec nowrite progbits

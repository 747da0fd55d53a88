; trampoline.asm - a followed function "returns" here.
; In:  rax, rdx, xmm0, xmm1: what it returns; rsp: above where its return address was

    bits 64
    section .text

    global return_trampoline
return_trampoline:
    ud2

    section .note.GNU-stack noalloc noexec nowrite progbits

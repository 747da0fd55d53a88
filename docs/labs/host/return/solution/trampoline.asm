; trampoline.asm - the code to which a followed function returns.
; In:  rax, rdx, xmm0, xmm1: its return values; rsp: the word above its return address

    bits 64
    section .text
    extern return_leave

    global return_trampoline
return_trampoline:
    sub  rsp, 8                 ; rsp points to the slot, where the return address was
    push rax
    push rdx
    sub  rsp, 5 * 8             ; room for two vector registers; aligns rsp to 16
    movups [rsp], xmm0
    movups [rsp + 16], xmm1
    lea  rdi, [rsp + 7 * 8]
    mov  rsi, rax
    call return_leave           ; uint64_t return_leave(uint64_t *slot, uint64_t value)
    mov  [rsp + 7 * 8], rax
    movups xmm0, [rsp]
    movups xmm1, [rsp + 16]
    add  rsp, 5 * 8
    pop  rdx
    pop  rax
    ret

    section .note.GNU-stack noalloc noexec nowrite progbits

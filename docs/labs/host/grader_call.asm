; grader_call.asm - calls a piece of code with chosen registers.

    bits 64

BELOW   equ 16                  ; words that a function may use below its rsp
VECTORS equ 17 * 8              ; offset in struct lab_regs

    section .text align=512     ; so bit 8 of the return address, where TF would be, is 0

; void lab_call(struct lab_regs *regs, const void *function)
    global lab_call:function
lab_call:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    push rdi                    ; regs
    push rsi                    ; function: the call below reads it at rsp
    mov  rax, [rdi]
    mov  ecx, BELOW
.fill:                          ; the 128 bytes below the return address of the function
    imul rax, rax, 77777
    mov  [rsp + rcx * 8 - (BELOW + 2) * 8], rax
    loop .fill
%assign i 0
%rep 16
    movups xmm %+ i, [rdi + VECTORS + i * 16]
%assign i i + 1
%endrep
    push qword [rdi + 15 * 8]
    popfq
    mov  rax, [rdi]
    mov  rcx, [rdi + 1 * 8]
    mov  rdx, [rdi + 2 * 8]
    mov  rbx, [rdi + 3 * 8]
    mov  rbp, [rdi + 4 * 8]
    mov  rsi, [rdi + 5 * 8]
    mov  r8, [rdi + 7 * 8]
    mov  r9, [rdi + 8 * 8]
    mov  r10, [rdi + 9 * 8]
    mov  r11, [rdi + 10 * 8]
    mov  r12, [rdi + 11 * 8]
    mov  r13, [rdi + 12 * 8]
    mov  r14, [rdi + 13 * 8]
    mov  r15, [rdi + 14 * 8]
    mov  rdi, [rdi + 6 * 8]
    call [rsp]
    pushfq
    push 2                      ; no flag is set: neither DF, nor a TF that was left
    popfq
    xchg rdi, [rsp + 2 * 8]     ; load regs, and store rdi in its place
    mov  [rdi], rax
    mov  [rdi + 1 * 8], rcx
    mov  [rdi + 2 * 8], rdx
    mov  [rdi + 3 * 8], rbx
    mov  [rdi + 4 * 8], rbp
    mov  [rdi + 5 * 8], rsi
    mov  [rdi + 7 * 8], r8
    mov  [rdi + 8 * 8], r9
    mov  [rdi + 9 * 8], r10
    mov  [rdi + 10 * 8], r11
    mov  [rdi + 11 * 8], r12
    mov  [rdi + 12 * 8], r13
    mov  [rdi + 13 * 8], r14
    mov  [rdi + 14 * 8], r15
%assign i 0
%rep 16
    movups [rdi + VECTORS + i * 16], xmm %+ i
%assign i i + 1
%endrep
    xor  eax, eax
    mov  ecx, BELOW - 1         ; without the highest word, which is overwritten above
.sum:
    rol  rax, 7
    xor  rax, [rsp + rcx * 8 - (BELOW + 1) * 8]
    loop .sum
    mov  [rdi + 16 * 8], rax
    pop  qword [rdi + 15 * 8]
    pop  rax                    ; function
    pop  qword [rdi + 6 * 8]
    pop  r15
    pop  r14
    pop  r13
    pop  r12
    pop  rbp
    pop  rbx
    ret

    section .note.GNU-stack noalloc noexec nowrite progbits

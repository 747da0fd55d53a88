; grader.asm - the functions that are followed. Each calls return_enter()
; at its beginning.

    bits 64
    section .text
    extern return_enter, leap

%macro follow 0
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbx
    mov  rbx, rsp
    mov  rsi, rdi
    lea  rdi, [rsp + 10 * 8]    ; where the return address is
    and  rsp, -16
    call return_enter
    mov  rsp, rbx
    pop  rbx
    pop  r11
    pop  r10
    pop  r9
    pop  r8
    pop  rdi
    pop  rsi
    pop  rdx
    pop  rcx
    pop  rax
%endmacro

; uint64_t twice(uint64_t x)
    global twice:function
twice:
    follow
    lea  rax, [rdi + rdi]
    ret

; uint64_t down(uint64_t n): n + ... + 1
    global down:function
down:
    follow
    xor  eax, eax
    test rdi, rdi
    jz   .end
    push rdi
    dec  rdi
    call down
    pop  rdi
    add  rax, rdi
.end:
    ret

; uint64_t tail(uint64_t x): twice(x + 1), by a jump
    global tail:function
tail:
    follow
    inc  rdi
    jmp  twice

; uint64_t leaper(uint64_t x): calls leap(), which does not come back
    global leaper:function
leaper:
    follow
    sub  rsp, 8
    call leap
    ud2

; uint64_t tail_leaper(uint64_t x): leaper(x), by a jump
    global tail_leaper:function
tail_leaper:
    follow
    jmp  leaper

; uint64_t outer(uint64_t x): calls function(x) of the caller, in rsi, and adds one
    global outer:function
outer:
    follow
    sub  rsp, 8
    call rsi
    add  rsp, 8
    inc  rax
    ret

; void many(uint64_t in, uint64_t out[12]): call full(in), and store registers after
; the call: rax, rdx, xmm0, xmm1, and rbx, rbp, r12, r13, r14, r15. The last six were
; in ^ 1 to in ^ 6 before the call.
    global many:function
many:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    push rsi                    ; 7 words and the return address: a multiple of 16
    mov  rbx, rdi
    xor  rbx, 1
    mov  rbp, rdi
    xor  rbp, 2
    mov  r12, rdi
    xor  r12, 3
    mov  r13, rdi
    xor  r13, 4
    mov  r14, rdi
    xor  r14, 5
    mov  r15, rdi
    xor  r15, 6
    call full
    pop  rsi
    mov  [rsi], rax
    mov  [rsi + 1 * 8], rdx
    movups [rsi + 2 * 8], xmm0
    movups [rsi + 4 * 8], xmm1
    mov  [rsi + 6 * 8], rbx
    mov  [rsi + 7 * 8], rbp
    mov  [rsi + 8 * 8], r12
    mov  [rsi + 9 * 8], r13
    mov  [rsi + 10 * 8], r14
    mov  [rsi + 11 * 8], r15
    pop  r15
    pop  r14
    pop  r13
    pop  r12
    pop  rbp
    pop  rbx
    ret

full:
    follow
    mov  rax, rdi
    mov  rdx, rdi
    not  rdx
    movq xmm0, rdi
    movq xmm1, rdx
    punpcklqdq xmm0, xmm1
    punpcklqdq xmm1, xmm0
    ret

    section .note.GNU-stack noalloc noexec nowrite progbits

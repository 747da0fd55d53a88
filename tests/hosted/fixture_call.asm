; fixture_call.asm - calls a function with given values in all registers, and saves all
; registers after it.
%include "kernel/base/proc.inc"

bits 64
section .text

IMAGE_FLAGS equ 16 * 8
IMAGE_SP equ 4 * 8

; void fixture_call(void (*fn)(void), struct image *image)
; In:   rdi = a function that keeps nothing but rsp; rsi = the registers to start with: sp
; is the
;       top of a stack for the function, aligned to 16
; Out:  the image has the registers that the function left
proc fixture_call
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov rax, [rsi + IMAGE_SP]       ; the new stack: image, old rsp, unused, fn
    mov [rax - 8], rsi
    mov [rax - 16], rsp
    mov [rax - 32], rdi
    lea rsp, [rax - 32]
    push qword [rsi + IMAGE_FLAGS]
    mov rax, [rsi]
    mov rcx, [rsi + 1 * 8]
    mov rdx, [rsi + 2 * 8]
    mov rbx, [rsi + 3 * 8]
    mov rbp, [rsi + 5 * 8]
    mov rdi, [rsi + 7 * 8]
    mov r8, [rsi + 8 * 8]
    mov r9, [rsi + 9 * 8]
    mov r10, [rsi + 10 * 8]
    mov r11, [rsi + 11 * 8]
    mov r12, [rsi + 12 * 8]
    mov r13, [rsi + 13 * 8]
    mov r14, [rsi + 14 * 8]
    mov r15, [rsi + 15 * 8]
    mov rsi, [rsi + 6 * 8]
    popfq
    call [rsp]
global fixture_returned:function
fixture_returned:
    pushfq
    xchg rax, [rsp + 8 + 24]        ; image
    pop qword [rax + IMAGE_FLAGS]
    cld
    mov [rax + 1 * 8], rcx
    mov [rax + 2 * 8], rdx
    mov [rax + 3 * 8], rbx
    mov [rax + 5 * 8], rbp
    mov [rax + 6 * 8], rsi
    mov [rax + 7 * 8], rdi
    mov [rax + 8 * 8], r8
    mov [rax + 9 * 8], r9
    mov [rax + 10 * 8], r10
    mov [rax + 11 * 8], r11
    mov [rax + 12 * 8], r12
    mov [rax + 13 * 8], r13
    mov [rax + 14 * 8], r14
    mov [rax + 15 * 8], r15
    mov rcx, [rsp + 24]
    mov [rax], rcx
    mov rsp, [rsp + 16]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
endproc fixture_call

; long fixture_through(long x, long (*fn)(long x)): return fn(x). The nop becomes a jump
; in the test, and the jmp behind it leads to fn.
proc fixture_through
    db 0x0f, 0x1f, 0x44, 0, 0   ; nop of five bytes
    jmp rsi
endproc fixture_through

; return_targets.asm - functions that carry return probes and cannot be written in C.

%include "kernel/base/proc.inc"

section .text

; uint64_t return_setjmp(struct return_env *env): save the place of the call in *env, and
; return 0. It returns once more, with the value given, when return_longjmp() is called.
; void return_longjmp(struct return_env *env, uint64_t value): go to the
; place saved in *env
proc return_setjmp
    mov [rdi], rbx
    mov [rdi + 8], rbp
    mov [rdi + 16], r12
    mov [rdi + 24], r13
    mov [rdi + 32], r14
    mov [rdi + 40], r15
    lea rax, [rsp + 8]
    mov [rdi + 48], rax
    mov rax, [rsp]
    mov [rdi + 56], rax
    xor eax, eax
    ret
endproc return_setjmp

proc return_longjmp
    mov rbx, [rdi]
    mov rbp, [rdi + 8]
    mov r12, [rdi + 16]
    mov r13, [rdi + 24]
    mov r14, [rdi + 32]
    mov r15, [rdi + 40]
    mov rsp, [rdi + 48]
    mov rax, rsi
    jmp [rdi + 56]
endproc return_longjmp

; different_registers VALUE: rax is VALUE, and each other register is one more.
%macro different_registers 1
    mov rax, %1
    lea rbx, [rax + 1]
    lea rcx, [rax + 2]
    lea rdx, [rax + 3]
    lea rsi, [rax + 4]
    lea rdi, [rax + 5]
    lea rbp, [rax + 6]
    lea r8, [rax + 7]
    lea r9, [rax + 8]
    lea r10, [rax + 9]
    lea r11, [rax + 10]
    lea r12, [rax + 11]
    lea r13, [rax + 12]
    lea r14, [rax + 13]
    lea r15, [rax + 14]
%endmacro

; store_registers - store the registers where rax points; rax itself is on the stack.
%macro store_registers 0
    mov [rax], rbx
    mov [rax + 8], rcx
    mov [rax + 16], rdx
    mov [rax + 24], rsi
    mov [rax + 32], rdi
    mov [rax + 40], rbp
    mov [rax + 48], r8
    mov [rax + 56], r9
    mov [rax + 64], r10
    mov [rax + 72], r11
    mov [rax + 80], r12
    mov [rax + 88], r13
    mov [rax + 96], r14
    mov [rax + 104], r15
    pop qword [rax + 112]
%endmacro

; void return_registers(uint64_t out[17], uint64_t flags): call return_scramble(), and
; store what its caller then finds in rbx rcx rdx rsi rdi rbp r8-r15, rax, flags, rsp
proc return_registers
    push_preserved
    push rdi
    mov rdi, rsi
    call return_scramble
    push rax
    mov rax, [rsp + 8]
    store_registers
    pushfq
    pop qword [rax + 120]
    mov [rax + 128], rsp
    cld
    pop rdi
    pop_preserved
    ret
endproc return_registers

; Return with different values in all registers, and with the flags that rdi has.
proc return_scramble
    push rdi
    different_registers 0x0102030405060708
    popfq
    ret
endproc return_scramble

; uint64_t return_recurse(uint64_t n): return n, by n nested calls with frames of 16
; bytes, the smallest possible
proc return_recurse
    test rdi, rdi
    jz .done
    sub rsp, 8
    dec rdi
    call return_recurse
    add rsp, 8
    inc rax
    ret
.done:
    xor eax, eax
    ret
endproc return_recurse

; uint64_t return_outer(uint64_t x): return return_inner(x + 1), by a tail call
; uint64_t return_inner(uint64_t x): return 2 * x
proc return_outer
    inc rdi
    jmp return_inner
endproc return_outer

proc return_inner
    lea rax, [rdi * 2]
    ret
endproc return_inner

; uint64_t return_circle(uint64_t n): return 42. Before that, return_circle() and
; return_circle_back() make tail calls to each other, n times there and back.
proc return_circle
    dec rdi
    js .done
    jmp return_circle_back
.done:
    mov eax, 42
    ret
endproc return_circle

proc return_circle_back
    jmp return_circle
endproc return_circle_back

; uint64_t return_elsewhere(uint64_t (*fn)(uint64_t), uint64_t x, void *top): return
; fn(x), called on the stack that ends at top
proc return_elsewhere
    push rbp
    mov rbp, rsp
    mov rsp, rdx
    mov rax, rdi
    mov rdi, rsi
    call rax
    mov rsp, rbp
    pop rbp
    ret
endproc return_elsewhere

; uint64_t return_stepped(uint64_t (*fn)(uint64_t), uint64_t x): return fn(x), called with
; TF set
proc return_stepped
    push rbp
    mov rbp, rsp
    mov rax, rdi
    mov rdi, rsi
    pushfq
    or qword [rsp], 1 << 8
    popfq
    call rax
    pushfq
    and qword [rsp], ~(1 << 8)
    popfq
    pop rbp
    ret
endproc return_stepped

; uint64_t return_steps_call(uint64_t x): return return_steps(x), and
; clear TF after the call
; uint64_t return_steps(uint64_t x): return 2 * x, with TF set
proc return_steps_call
    push rbp
    mov rbp, rsp
    call return_steps
    pushfq
    and qword [rsp], ~(1 << 8)
    popfq
    pop rbp
    ret
endproc return_steps_call

proc return_steps
    lea rax, [rdi * 2]
    pushfq
    or qword [rsp], 1 << 8
    popfq
    ret
endproc return_steps

; void return_echo_call(uint64_t out[16], uint64_t flags): call return_echo() with @flags
; and different values in all registers. return_echo() stores to @out what it finds in
; rbx rcx rdx rsi rdi rbp r8-r15, rax, flags.
proc return_echo_call
    push_preserved
    mov [rel echo_out], rdi
    push rsi
    popfq
    different_registers 0x1112131415161718
    call return_echo
    pop_preserved
    ret
endproc return_echo_call

proc return_echo
    db 0x0f, 0x1f, 0x44, 0, 0   ; nop of five bytes
    pushfq
    push rax
    mov rax, [rel echo_out]
    store_registers
    pop qword [rax + 120]
    ret
endproc return_echo

section .bss
echo_out: resq 1

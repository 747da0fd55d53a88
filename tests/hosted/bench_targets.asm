; bench_targets.asm - functions that bench_native.c calls in loops and measures.
%include "kernel/base/proc.inc"

bits 64
section .text

; void bench_empty(uint64_t rounds, void (*unused)(void)): the loop without calls
; In:   rdi = rounds
proc bench_empty, 64
.next:
    dec rdi
    jnz .next
    ret
endproc bench_empty

; void bench_calls(uint64_t rounds, void (*fn)(void)): the loop with a call in each round
; In:   rdi = rounds, rsi = a function that changes nothing but rax and flags
proc bench_calls, 64
.next:
    call rsi
    dec rdi
    jnz .next
    ret
endproc bench_calls

; The flags are dead at the first instruction: the add behind it writes them.
proc bench_dead, 64
    lea rax, [rdi + 0x12345678]
    add rax, rsi
    ret
endproc bench_dead

; bench_dead once more. No probe is ever set here.
proc bench_twin, 64
    lea rax, [rdi + 0x12345678]
    add rax, rsi
    ret
endproc bench_twin

; The flags are live at the lea: the cmovle behind it reads ZF, SF and OF. (A counter
; would leave CF alone.)
proc bench_live, 64
    cmp rdi, rsi
    lea rax, [rdi + 0x12345678]
    cmovle rax, rsi
    ret
endproc bench_live

proc bench_return, 64
    ret
endproc bench_return

; Two ways to follow a return, without a probe. Both keep the caller's return address in
; `aside`.
section .bss
align 8
aside: resq 64
section .data
align 8
aside_top: dq aside
section .text

; KEEP reg: keep the address in reg
%macro KEEP 1
    push rcx
    mov rcx, [rel aside_top]
    mov [rcx], %1
    add qword [rel aside_top], 8
    pop rcx
%endmacro

; TAKE reg: load reg with the address that was kept last
%macro TAKE 1
    sub qword [rel aside_top], 8
    mov %1, [rel aside_top]
    mov %1, [%1]
%endmacro

; The function returns to a trampoline, and that returns to the caller. The processor
; predicts both returns wrongly.
proc bench_return_exchanged, 64
    mov rax, [rsp]
    KEEP rax
    lea rax, [rel .trampoline]
    mov [rsp], rax
    ret
.trampoline:
    TAKE rax
    push rax
    ret
endproc bench_return_exchanged

; This code calls the function itself, so the processor predicts its return. (A function
; called like this would not find its arguments on the stack.)
proc bench_return_called, 64
    pop rax
    KEEP rax
    call bench_return
    TAKE rax
    push rax
    ret
endproc bench_return_called

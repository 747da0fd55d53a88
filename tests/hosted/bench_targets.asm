; bench_targets.asm - what bench_native.c measures: functions that are called in loops.
%include "kernel/base/proc.inc"

bits 64
section .text

; void bench_empty(uint64_t rounds, void (*unused)(void))
; In:   rdi = how often
proc bench_empty, 64
.next:
    dec rdi
    jnz .next
    ret
endproc bench_empty

; void bench_calls(uint64_t rounds, void (*fn)(void))
; In:   rdi = how often, rsi = a function that changes nothing but rax and flags
proc bench_calls, 64
.next:
    call rsi
    dec rdi
    jnz .next
    ret
endproc bench_calls

; The flags are written behind it before anybody reads them.
proc bench_dead, 64
    lea rax, [rdi + 0x12345678]
    add rax, rsi
    ret
endproc bench_dead

; They are read, and not only CF, which counting leaves alone.
proc bench_live, 64
    cmp rdi, rsi
    lea rax, [rdi + 0x12345678]
    cmovle rax, rsi
    ret
endproc bench_live

proc bench_return, 64
    ret
endproc bench_return

; Two ways to be told of a return, with nothing else about them: the caller's address is kept
; aside in both.
section .bss
align 8
aside: resq 64
section .data
align 8
aside_top: dq aside
section .text

; KEEP reg: reg = an address, kept aside
%macro KEEP 1
    push rcx
    mov rcx, [rel aside_top]
    mov [rcx], %1
    add qword [rel aside_top], 8
    pop rcx
%endmacro

; TAKE reg: reg = the address that was kept last
%macro TAKE 1
    sub qword [rel aside_top], 8
    mov %1, [rel aside_top]
    mov %1, [%1]
%endmacro

; The function returns to a trampoline, which returns to the caller: two returns that the
; processor predicts to lead elsewhere.
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

; The function is called anew, where it finds no arguments on the stack.
proc bench_return_called, 64
    pop rax
    KEEP rax
    call bench_return
    TAKE rax
    push rax
    ret
endproc bench_return_called

; crowd.asm - 10,000 functions, and a loop that calls them in turn, for `bench
; hit.opt_crowd`. Only `make bench` links it: each function has two instructions that can
; be probed, so the tests that put a probe everywhere would have a third more to do.

%include "kernel/base/proc.inc"

%define COUNT 10000
%define STRIDE 16

section .text
align STRIDE
%assign n 0
%rep COUNT
proc bench_crowd_%[n]
    db 0x48, 0x8d, 0xbf, 1, 0, 0, 0     ; lea rdi, [rdi + 1], as in targets.asm
    ret
endproc bench_crowd_%[n]
%assign n n + 1
%endrep

; void bench_loop_crowd(uint64_t count): make count calls, of the functions in
; bench_among_called in turn.
proc bench_loop_crowd
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    push r13
    push r13
    mov rbx, rdi
    mov r12, [rel bench_among_called]
    mov r13, [rel bench_among_called + 8]
.again:
    mov rdi, rbx
    call r12
    add r12, STRIDE
    cmp r12, r13
    jne .same_round
    mov r12, [rel bench_among_called]
.same_round:
    dec rbx
    jnz .again
    pop r13
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
endproc bench_loop_crowd

; The struct bench_among of these functions.
section .rodata
align 8
global bench_among_all
bench_among_all:
    dq bench_loop_crowd, bench_crowd_0
    dq STRIDE, COUNT

; uintptr_t bench_among_called[2]: the address of the first function to call, and the end
; of the last one.
section .data
align 8
global bench_among_called
bench_among_called: dq bench_crowd_0, bench_crowd_0 + STRIDE

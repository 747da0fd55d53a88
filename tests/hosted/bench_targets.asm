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

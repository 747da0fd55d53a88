; targets.asm - the functions that `bench` probes, which do next to nothing, and the loops
; that call them.
;
; An emulator finds translated code by a hash of its address. If two addresses that a hit
; executes have the same hash, the hit takes longer. So each target exists at several
; places, and the fastest one is used.

%include "kernel/base/proc.inc"

%define PLACEMENTS 8
%define GAP 432                 ; bytes between two places: their page offsets differ

; TARGET kind, placement, first instruction: make a function and its loop. The probe is on
; the first instruction.
%macro TARGET 3+
proc bench_%1_%2
    %3
.behind:
    lea rdi, [rdi + 2]
    lea rdi, [rdi + 3]
    mov rax, rdi
    ret
endproc bench_%1_%2

proc bench_loop_%1_%2           ; rdi = how many calls
    push rbp
    mov rbp, rsp
    push rbx
    push rbx
    mov rbx, rdi
.again:
    mov rdi, rbx
    call bench_%1_%2
    dec rbx
    jnz .again
    pop rbx
    pop rbx
    pop rbp
    ret
endproc bench_loop_%1_%2
%endmacro

; TABLE kind: struct bench_target { void (*loop)(uint64_t count); uintptr_t addr; }
%macro TABLE 1
    global bench_targets_%1
bench_targets_%1:
%assign place 0
%rep PLACEMENTS
    ROW %1, place
%assign place place + 1
%endrep
%endmacro

%macro ROW 2
    dq bench_loop_%1_%2, bench_%1_%2
%endmacro

section .rodata
align 16
    TABLE lea
    TABLE long
    TABLE shift
    TABLE jmp

section .text
%assign place 0
%rep PLACEMENTS
    TARGET lea, place, lea rdi, [rdi + 1]
    TARGET long, place, db 0x48, 0x8d, 0xbf, 1, 0, 0, 0 ; the same in 7 bytes
    TARGET shift, place, shl rdi, 1
    TARGET jmp, place, jmp short .behind
    times GAP db 0xcc
%assign place place + 1
%endrep

; switch_check.asm - checks that switch_to() keeps registers, and clears the others: it
; switches to a second stack, whose code changes all of them and switches back.

%include "kernel/base/proc.inc"

extern switch_to

section .text

%macro EXPECT 2 ; register, its bit in the result
    mov edx, %2 + 1
    cmp %1, rdx
    je %%kept
    bts rax, %2
%%kept:
%endmacro

; uint64_t switch_check(void)
; Out: a bit for each register that was not kept: rbx, rbp, r12, r13, r14, r15, carry; and one
;      if another register was not cleared
proc switch_check
    push_preserved
    mov ebx, 1
    mov ebp, 2
    mov r12d, 3
    mov r13d, 4
    mov r14d, 5
    mov r15d, 6
    lea rsi, [rel .here_sp]
    lea rdx, [rel .there_frame]
    stc
    call switch_to
    setnc al
    or rcx, rdx
    or rcx, rsi
    or rcx, rdi
    or rcx, r8
    or rcx, r9
    or rcx, r10
    or rcx, r11
    setnz cl
    movzx eax, al
    movzx ecx, cl
    shl eax, 6
    shl ecx, 7
    or eax, ecx
    EXPECT rbx, 0
    EXPECT rbp, 1
    EXPECT r12, 2
    EXPECT r13, 3
    EXPECT r14, 4
    EXPECT r15, 5
    pop_preserved
    ret

.there:
    xor ebx, ebx
    xor ebp, ebp
    xor r12d, r12d
    xor r13d, r13d
    xor r14d, r14d
    xor r15d, r15d
    lea rsi, [rel .there_sp]
    mov rdx, [rel .here_sp]
    lea rcx, [rel .there]
    mov r8, rcx
    mov r9, rcx
    mov r10, rcx
    mov r11, rcx
    clc
    call switch_to
    ud2
endproc switch_check

; The second stack, with what switch_to() expects on it: flags, six
; registers, return address.
section .data
align 16
    times 64 dq 0
switch_check.there_frame:
    dq 2
    times 6 dq 0
    dq switch_check.there
    times 2 dq 0

section .bss
switch_check.here_sp:
    resq 1
switch_check.there_sp:
    resq 1

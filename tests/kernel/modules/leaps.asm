; leaps.asm - a module that jumps to addresses which its code computes. No relocation names
; these addresses: the assembler knows all distances within a section. At the end it jumps
; into functions of the image.
;
; Each function takes N and returns N + 1; if N is even, table_leap() returns 2 * N.

%include "kernel/base/proc.inc"

; The leap leads behind the first two NOPs.
%macro landing 0
.near:
    nop
    nop
    lea eax, [rdi + 1]
    ret
%endmacro

section .text

proc jump_leap
    lea rdx, [rel .near]
    add rdx, 2
    jmp rdx
    landing
endproc jump_leap

proc return_leap
    lea rdx, [rel .near]
    add rdx, 2
    push rdx
    ret
    landing
endproc return_leap

proc call_leap
    call .next
.next:
    pop rdx
    add rdx, .near - .next + 2
    jmp rdx
    landing
endproc call_leap

proc table_leap
    lea rdx, [rel steps]
    mov eax, edi
    and eax, 1
    movsx rax, byte [rdx + rax]
    add rdx, rax
    lea eax, [rdi + 1]
    jmp rdx
.even:
    nop
    lea eax, [rdi + rdi]
.odd:
    nop
    ret
endproc table_leap

proc distance_leap
    lea rdx, [rel .near]
    mov ecx, [rel distance]
    add rdx, rcx
    jmp rdx
    landing
endproc distance_leap

proc entry_leap
    lea rdx, [rel entry_land]
    add rdx, 2
    jmp rdx
endproc entry_leap

proc entry_land
    landing
endproc entry_land

section .rodata
distance:
    dd 2

section .text

; Nothing tells that this is data.
global steps
steps:
    db table_leap.even + 1 - steps, table_leap.odd - steps

; Each of these does itself what its function of the image does up to there, and returns
; what that function returns: tests/kernel/region_targets.asm.

extern region_mix_at, region_late_at, region_choose_at

section .text

proc mix_leap
    mov eax, edi
    inc eax
    jmp region_mix_at + 2
endproc mix_leap

proc late_leap
    mov eax, edi
    inc eax
    lea rdx, [rel region_late_at + 2]
    jmp rdx
endproc late_leap

proc choose_leap
    mov eax, edi
    jmp [rel odd_choice]
endproc choose_leap

section .data
odd_choice:
    dq region_choose_at + 4

; link_targets.asm - a function of six long instructions: each is long enough for a jump
; that reads no byte of the next instruction.

%include "kernel/base/proc.inc"

section .text

; uint64_t link_row(uint64_t x): return 3 * (x + 8) + 21. link_row_addrs has the addresses
; of its instructions.
proc link_row
    lea rax, [rdi + 0x12345678]
.second:
    lea rax, [rax - 0x12345670]
.third:
    lea rax, [rax + rax * 2 + 0x12345678]
.fourth:
    lea rax, [rax - 0x12345670]
.fifth:
    lea rax, [rax + 0x0badcafe]
.sixth:
    lea rax, [rax - 0x0badcafe + 13]
    ret
endproc link_row

section .rodata progbits alloc noexec nowrite align=8
global link_row_addrs
link_row_addrs:
    dq link_row, link_row.second, link_row.third, link_row.fourth, link_row.fifth
    dq link_row.sixth

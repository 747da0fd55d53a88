; link_targets.asm - a row of long instructions, whose jumps have room of their own.

%include "kernel/base/proc.inc"

section .text

; uint64_t link_row(uint64_t x): 3 * (x + 8) + 21, and where its instructions are
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

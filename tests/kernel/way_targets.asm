; way_targets.asm - functions of one argument x that return 9 * x + 2. Their first instruction
; decides how a hit of it is run.

%include "kernel/base/proc.inc"

section .text

; It can be moved: a copy runs it.
proc way_moved
    lea rax, [rdi + rdi * 8 + 2]
    ret
endproc way_moved

; A direct call: emulated behind a trap, and called in its place by a jump.
proc way_called
    call way_callee
    ret
endproc way_called

way_callee:
    lea rax, [rdi + rdi * 8 + 2]
    ret

; Done to the image of the registers.
proc way_imaged
    call [rel way_pointer]
    ret
endproc way_imaged

; Short instructions: a jump that displaces several.
proc way_short
    push rbx
    mov rbx, rdi
    lea rax, [rbx + rbx * 8]
    inc rax
    inc rax
    pop rbx
    ret
endproc way_short

section .rodata
align 8
way_pointer: dq way_callee

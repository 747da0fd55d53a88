; way_targets.asm - functions of one argument x that return 9 * x + 2. They are probed at
; the first instruction; its kind decides by which way a hit runs it.

%include "kernel/base/proc.inc"

section .text

; A hit runs a copy of this lea.
proc way_moved
    lea rax, [rdi + rdi * 8 + 2]
    ret
endproc way_moved

; A trap emulates this direct call. A jump runs it as a call.
proc way_called
    call way_callee
    ret
endproc way_called

way_callee:
    lea rax, [rdi + rdi * 8 + 2]
    ret

; A jump emulates this indirect call: it is done to the image of the registers.
proc way_imaged
    call [rel way_pointer]
    ret
endproc way_imaged

; One jump displaces several of these short instructions.
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

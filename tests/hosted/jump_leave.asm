; jump_leave.asm - the ways out of a hit by a jump, if the program goes on by the register
; image; see probes/jump/detour.asm. A thread in this file is on its way to a cell, and
; quiescence knows that by its ip: signals may come between any two instructions.

%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"

extern jump_resume              ; int *jump_resume(struct pt_regs *)

bits 64
section .text.detour progbits alloc exec nowrite align=64

; In:   rsp = struct pt_regs
; Out:  at the ip of the image, with all its registers and flags; if the program steps
; itself, the
;       step ends behind its next instruction. Unlike in the kernel, no thread is switched
;       here.
proc switch_if_due
    POP EACH_REGISTER_DOWN
    lea rsp, [rsp + 16]         ; aux, orig_ax
    iretq
endproc switch_if_due
nokprobe switch_if_due

; A handler has faulted and is given up. The CPU comes here when the image of the fault is
; resumed. In:   rsp = the image of the hit; all other registers are lost
proc jump_resume_hit
    mov rbx, rsp
    and rsp, -16
    mov rdi, rbx
    call jump_resume
    mov rsp, rbx
    dec dword [rax]             ; preemption goes on
    jmp switch_if_due
endproc jump_resume_hit
nokprobe jump_resume_hit

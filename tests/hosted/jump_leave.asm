; jump_leave.asm - the ways out of a hit that a jump has brought, where the program goes on by
; the register image; see probes/jump/detour.asm. A thread in here is on its way to a cell,
; and is known by it: signals may come between any two instructions.

%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"

extern jump_resume              ; int *jump_resume(struct pt_regs *)

bits 64
section .text.detour progbits alloc exec nowrite align=64

; In:   rsp = struct pt_regs
; Out:  where the image says, with all registers and flags of it; a step that the program
;       takes ends behind its next instruction. No other thread waits for its turn here.
proc switch_if_due
    POP EACH_REGISTER_DOWN
    lea rsp, [rsp + 16]         ; aux, orig_ax
    iretq
endproc switch_if_due
nokprobe switch_if_due

; A handler has faulted and is given up: rsp = the image of its hit, all else is lost. Jumped
; to by resuming the image of the fault.
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

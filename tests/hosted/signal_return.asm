; signal_return.asm - the ways out of a signal handler.
%include "kernel/base/proc.inc"

SYS_RT_SIGRETURN equ 15

extern trap_resume              ; ucontext_t *trap_resume(struct trap_frame *)

bits 64
section .text

; void __restore_rt(void): a signal handler returns to here. Name and bytes are those by which
; debuggers know that a signal frame lies above.
; In:   rsp = the image that the kernel saved
; Out:  continues where the signal came, with the registers of the image
proc __restore_rt
    mov rax, strict dword SYS_RT_SIGRETURN
    syscall
endproc __restore_rt
nokprobe __restore_rt

; A handler has faulted and is given up: rsp = struct trap_frame of its hit, all else is lost.
; Jumped to by resuming the image of the fault.
proc trap_resume_hit
    mov rdi, rsp
    call trap_resume
    mov rsp, rax
    jmp __restore_rt
endproc trap_resume_hit
nokprobe trap_resume_hit

; signal_return.asm - the ways out of a signal handler.
%include "kernel/base/proc.inc"

SYS_RT_SIGRETURN equ 15

extern trap_resume              ; ucontext_t *trap_resume(struct trap_frame *)

bits 64
section .text

; void signal_return(void): a signal handler returns to here.
; In:   rsp = the image that the kernel saved
; Out:  continues where the signal came, with the registers of the image
proc signal_return
    mov eax, SYS_RT_SIGRETURN
    syscall
endproc signal_return
nokprobe signal_return

; A handler has faulted and is given up: rsp = struct trap_frame of its hit, all else is lost.
; Jumped to by resuming the image of the fault.
proc trap_resume_hit
    mov rdi, rsp
    call trap_resume
    mov rsp, rax
    jmp signal_return
endproc trap_resume_hit
nokprobe trap_resume_hit

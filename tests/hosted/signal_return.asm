; signal_return.asm - the ways out of a signal handler.
%include "kernel/base/proc.inc"

SYS_RT_SIGRETURN equ 15

extern trap_resume              ; ucontext_t *trap_resume(struct trap_frame *)

bits 64
section .text

; void __restore_rt(void): signal handlers return to here. Debuggers recognise a signal
; frame by this name and these bytes.
; In:   rsp = the image that Linux saved
; Out:  at the ip that the signal interrupted, with the registers of the image
proc __restore_rt
    mov rax, strict dword SYS_RT_SIGRETURN
    syscall
endproc __restore_rt
nokprobe __restore_rt

; A handler has faulted and is given up. The CPU comes here when the image of the fault is
; resumed. In:   rsp = struct trap_frame of the hit; all other registers are lost
proc trap_resume_hit
    mov rdi, rsp
    call trap_resume
    mov rsp, rax
    jmp __restore_rt
endproc trap_resume_hit
nokprobe trap_resume_hit

; sanitized_calls.asm - what the code of detours calls, under a sanitizer: its runtime uses
; vector registers, which are the program's there, and wants the stack aligned. Linked with
; --wrap. Handlers are called from behind one of these, too; see row_init(). The thread
; sanitizer is told where the hit ends.
%include "kernel/base/proc.inc"

FXSAVE_LEN equ 512

extern jump_done                ; void jump_done(void)

bits 64
section .text

%macro WRAP 1
extern __real_%1
proc __wrap_%1
    push rbp
    mov rbp, rsp
    sub rsp, FXSAVE_LEN
    and rsp, -16
    fxsave64 [rsp]
    call __real_%1
    push rax
    push rax                    ; the stack stays aligned
    call jump_done
    pop rax
    pop rax
    fxrstor64 [rsp]
    leave
    ret
endproc __wrap_%1
nokprobe __wrap_%1
%endmacro

    WRAP kprobe_jump_handler
    WRAP kprobe_image_handler
    WRAP kprobe_jump_leave
    WRAP kprobe_post_handler

; sanitized_calls.asm - with a sanitizer, stands between detours and the functions of the
; engine that they call; linked with --wrap. The sanitizer's runtime uses vector
; registers, which still have the program's values, and needs an aligned stack. Handlers
; are called through one of these wrappers, too; see STACK_BASE in posix_threads.c. The
; wrappers tell TSan where a hit ends.
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

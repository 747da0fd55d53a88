; enter.asm - the way from the entry of a function to the check of its contract, and back.
;
; The function's second instruction is a call of its thunk; its frame does not exist yet.
%include "kernel/base/proc.inc"

extern contract_check

MSR_GS_BASE equ 0xc0000101

section .text

; In:  r11d = the number of the rule; rsp -> the ip in the function, the ip in its caller
; Out: all registers but r11 and the flags as on entry
proc contract_enter
    push rax
    push rcx
    push rdx
    mov  ecx, MSR_GS_BASE
    rdmsr
    or   eax, edx
    mov  rdx, [rsp]
    mov  rcx, [rsp + 8]
    jz   .before_areas          ; this CPU has no area yet, which the check reads
    push r10
    push r9                     ; the arguments, the first one at the lowest address
    push r8
    push rcx
    push rdx
    push rsi
    push rdi
    mov  edi, r11d
    mov  rsi, [rsp + 88]
    mov  rdx, rsp
    call contract_check
    pop  rdi
    pop  rsi
    pop  rdx
    pop  rcx
    pop  r8
    pop  r9
    pop  r10
.before_areas:
    add  rsp, 16
    pop  rax
    ret
endproc contract_enter
nokprobe contract_enter

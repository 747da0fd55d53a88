; enter.asm - enters a fixture with chosen values in all registers, and stores
; all registers when the fixture ends. Preemption is off; one fixture runs at
; a time (fixture.c).

%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"

; struct image of fixture.h: fifteen registers in the order of the pops, flags, sp.
IMAGE_FLAGS equ 15 * 8
IMAGE_SP    equ 16 * 8
IMAGE_WORDS equ 17

section .text

; unsigned fixture_enter(const struct image *image, uintptr_t ip)
; In:   interrupts off; image.sp in fixture_stack
; Out:  which exit was taken, enum fixture_exit; fixture_left holds the image there
;
; Flags and ip are stored just below image.sp, and loaded from there by popfq and ret, as
; in trap_exit of entry.asm. After the ret all registers are as in the image.
proc fixture_enter
    pushfq
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rel home], rsp
    mov rax, [rdi + IMAGE_SP]
    mov rcx, [rdi + IMAGE_FLAGS]
    sub rax, 16
    mov [rax + 8], rsi
    mov [rax], rcx
    mov [rel start], rax
    mov rsp, rdi
    POP EACH_REGISTER_DOWN
    mov rsp, [rel start]
    popfq
    ret
endproc fixture_enter

; The exits. An exit changes no register and no flag before fixture_leave stores them.
%macro exit 2
proc exit_%1
    mov dword [rel exit_number], %2
    jmp fixture_leave
endproc exit_%1
%endmacro

exit fall, 0
exit taken, 1
exit fault, 2

; Switch to the stack of the caller of fixture_enter: interrupts may be on, and could use
; the stack.
proc fixture_leave
    mov [rel fixture_left + IMAGE_SP], rsp
    mov rsp, [rel home]
    pushfq
    cli
    cld
    PUSH EACH_REGISTER_DOWN
    mov rsi, rsp
    lea rdi, [rel fixture_left]
    mov ecx, IMAGE_WORDS - 1
    rep movsq
    mov rsp, rsi
    mov eax, [rel exit_number]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    popfq
    ret
endproc fixture_leave

section .bss
alignb 8
home:
    resq 1
start:
    resq 1
exit_number:
    resq 1

global fixture_left
fixture_left:
    resq IMAGE_WORDS

; The stack and the memory that fixtures use.
alignb 4096
global fixture_stack
fixture_stack:
    resb 16384
global fixture_memory
fixture_memory:
    resb 16384

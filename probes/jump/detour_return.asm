; detour_return.asm - the entry of a function that nothing but a return probe is on: what
; kretprobe_entry() does where that is simple, without an image of the registers.
;
; The return address stays where it is, and is taken off the stack when it is in the shadow:
; the cell calls the function in its caller's stead, with the same stack, and is returned to;
; see probes/returns/return_point.c. An interrupt may come between the two: nothing below rsp
; is needed.
;
; Runs with preemption and interrupts as the program has them. Unregistering waits for
; threads that are in here.
;
; Simple is: what follow.inc says, what admit.inc says of the CPU, and enough of the stack is
; left. What isn't is done with an image, by detour_call, and goes on where the
; cell has a jump to the copy.
;
; The status flags are always kept. Not to keep them where they are dead would save 6 of 215
; instructions, and 3.6 % of the cycles under QEMU.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "probes/jump/registers.inc"
%include "probes/jump/follow.inc"
%include "probes/jump/admit.inc"

extern detour_call

%define CPU(field) gs:field
%define SAVED_REGISTERS rax, rcx, rdx, rsi, rdi, r8, r9
FLAGS equ 7 * 8                 ; as lahf and seto leave them in ax
SAVED equ 8 * 8
WORD_0 equ SAVED                ; where the cell goes on
SLOT equ SAVED + 8              ; the function's return address
NOT_CALLED equ 2 * 5            ; from the cell's second call to its last jump

section .text.detour progbits alloc exec nowrite align=64

; RESTORE: as on entry
%macro RESTORE 0
    mov rax, [rsp + FLAGS]
    add al, 0x7f                        ; OF
    sahf
    LOAD SAVED_REGISTERS
    lea rsp, [rsp + SAVED]
%endmacro

; Its rows in the table of struct detour_code.
[section .rodata_detour_codes progbits alloc noexec nowrite align=8]
    dq detour_return, 0, 0, detour_return.ret, SAVED / 8
    dq detour_return.jmp, 0, 0, detour_return.jmp, 0
__?SECT?__

; In:   [rsp] = where the cell goes on, [rsp + 8] = the return address
; Out:  there, with neither of them on the stack, all registers and status flags as they were
proc detour_return, 64
    frame detour, SITE_ADDR
    lea rsp, [rsp - SAVED]
    STORE SAVED_REGISTERS
    lahf
    seto al
    mov [rsp + FLAGS], rax
    mov rsi, [rsp + WORD_0]
    inc rsi
    or rsi, 31
    mov rsi, [rsi - 7]
    mov rsi, [rsi + SITE_HOLDER]
    IS_SIMPLE rsp + SLOT
    lea rdx, [rcx + REGS_SIZE + STACK_MIN]
    cmp [rax + SHADOW_LEN], rdx         ; with room for the handler, later
    sbb rdx, rdx
    or r8, rdx
    ADMIT_CPU d, NO_NMI
    or r8, rdx
    cmp qword [gs:PERCPU_PROBE], 1      ; the CPU is ready for probes
    sbb rdx, rdx
    or r8, rdx
    cmp rsi, 1                          ; still what it is for
    sbb rdx, rdx
    or r8, rdx
    jnz .not_simple
    FOLLOW
    mov eax, [rsi + HOLDER_COUNTER]
    inc qword [gs:COUNTERS_OFF + rax * 8]
    RESTORE
.ret:
    ret 8
.not_simple:
    add qword [rsp + WORD_0], NOT_CALLED
    RESTORE
.jmp:
    jmp detour_call
endproc detour_return
nokprobe detour_return

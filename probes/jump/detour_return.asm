; detour_return.asm - the routine detour_return. A cell calls it at the entry of a
; function that has no other probe there than a return probe. It does the work of
; kretprobe_entry() in the simple case, without an image of the registers.
;
; It saves the return address in the shadow, and then removes it from the stack. Then
; the cell itself calls the function, with the same stack, and the function returns to the
; cell: see probes/returns/return_point.c. An interrupt may come at any time and overwrite
; what is below rsp, so no data is kept there.
;
; Preemption and interrupts are as the program has them. Unregistering waits for threads
; that are in this code.
;
; A call is simple if the conditions of follow.inc hold, and those of admit.inc about the
; CPU, and enough of the stack is left. In other cases detour_call does the work, with an
; image. The CPU then goes on at the last jump of the cell, which leads to the copy.
;
; The status flags are always preserved. For functions at whose entry they are dead, this
; costs 6 of 215 instructions, and 3.6 % of the cycles under QEMU.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
%include "probes/jump/follow.inc"
%include "probes/jump/admit.inc"

extern detour_call

%define CPU(field) gs:field
%define SAVED_REGISTERS rax, rcx, rdx, rsi, rdi, r8, r9
FLAGS equ 7 * 8                 ; the place of the flags, as lahf and seto leave them in ax
SAVED equ 8 * 8
WORD_0 equ SAVED                ; the address in the cell where the CPU goes on
SLOT equ SAVED + 8              ; the function's return address
NOT_CALLED equ 2 * 5            ; from the cell's second call to its last jump

section .text.detour progbits alloc exec nowrite align=64

; RESTORE: give the registers, the status flags and rsp the values that they had on entry.
%macro RESTORE 0
    mov rax, [rsp + FLAGS]
    add al, 0x7f                        ; OF
    sahf
    LOAD SAVED_REGISTERS
    lea rsp, [rsp + SAVED]
%endmacro

; The rows of detour_return in the table of struct detour_code.
[section .rodata_detour_codes progbits alloc noexec nowrite align=8]
    dq detour_return, 0, 0, detour_return.ret, SAVED / 8
    dq detour_return.jmp, 0, 0, detour_return.jmp, 0
__?SECT?__

; In:   [rsp] = the address in the cell where the CPU goes on, [rsp + 8] = the return
;       address
; Out:  continues at that address in the cell, with both words removed from the stack. All
;       registers and status flags have the values that they had on entry.
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
    cmp [rax + SHADOW_LEN], rdx         ; also for the handler at the return
    sbb rdx, rdx
    or r8, rdx
    ADMIT_CPU d, NO_NMI
    or r8, rdx
    cmp rsi, 1                          ; 0: the site has lost its holder: ext_given_up()
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

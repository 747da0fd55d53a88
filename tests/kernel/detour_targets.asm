; detour_targets.asm - functions to be probed at an instruction that is long enough for a
; jump, and functions that call them with chosen registers.

%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
%include "kernel/mm/extable.inc"

; TARGET name[, label]: make a row of the table, struct detour_target, and begin
; the function @name. The probed instruction is the first of the function, or
; the one at @label.
%macro TARGET 1-2
    [section .rodata.detour_targets]
    dq %1, %1 %+ %2, %%name
    [section .rodata]
    %defstr name %1
%%name: db name, 0
    __?SECT?__
proc %1
%endmacro

section .rodata.detour_targets progbits alloc noexec nowrite align=8
global detour_targets, detour_targets_end
detour_targets:

section .text

TARGET detour_add               ; it writes all status flags: a detour may change them
    add rcx, 0x12345678
    ret
endproc detour_add

TARGET detour_adc               ; it reads CF: a detour must keep the status flags
    adc rcx, 0x12345678
    ret
endproc detour_adc

TARGET detour_lea
    lea rdx, [rdi + rsi + 0x12345678]
    ret
endproc detour_lea

TARGET detour_push
    push strict dword 0x12345678
    pop rdx
    ret
endproc detour_push

TARGET detour_lea_sp
    db 0x3e
    lea rsp, [rsp - 8]
    lea rsp, [rsp + 8]
    ret
endproc detour_lea_sp

TARGET detour_load
    mov rax, [rel detour_targets]
    ret
endproc detour_load

TARGET detour_jc
    jc near .taken
    mov eax, 1
    ret
.taken:
    mov eax, 2
    ret
endproc detour_jc

TARGET detour_jmp
    jmp near .taken
    ud2
.taken:
    mov eax, 3
    ret
endproc detour_jmp

TARGET detour_loop
    db 0x3e, 0x3e, 0x3e
    loop .taken
    mov eax, 4
    ret
.taken:
    mov eax, 5
    ret
endproc detour_loop

TARGET detour_ret
    db 0x3e, 0x3e, 0x3e, 0x3e
    ret
endproc detour_ret

TARGET detour_call_rel
    call .callee
    ret
.callee:
    mov rax, [rsp]              ; the return address must be that without a probe
    add rdx, 1
    ret
endproc detour_call_rel

TARGET detour_call_reg
    db 0x3e, 0x3e, 0x3e
    call r15
    ret
endproc detour_call_reg

proc detour_callee
    mov rax, [rsp]
    ret
endproc detour_callee

TARGET detour_pushf
    db 0x3e, 0x3e, 0x3e, 0x3e
    pushfq
    pop rax
    ret
endproc detour_pushf

TARGET detour_popf, .insn
    push rdi
.insn:
    db 0x3e, 0x3e, 0x3e, 0x3e
    popfq
    ret
endproc detour_popf

TARGET detour_sti
    db 0x3e, 0x3e, 0x3e, 0x3e
    sti
    ret
endproc detour_sti

TARGET detour_sti_call          ; sti and the call are both done to the image
    db 0x3e, 0x3e, 0x3e, 0x3e
    sti
    call .callee
    ret
.callee:
    mov rax, [rsp]
    ret
endproc detour_sti_call

TARGET detour_hlt
    db 0x3e, 0x3e, 0x3e, 0x3e
    hlt
    ret
endproc detour_hlt

TARGET detour_cr3, .insn
    mov rax, cr3
.insn:
    db 0x3e, 0x3e
    mov cr3, rax
    ret
endproc detour_cr3

TARGET detour_ds, .insn
    mov eax, ds
.insn:
    db 0x3e, 0x3e, 0x3e
    mov ds, eax
    ret
endproc detour_ds

TARGET detour_undefined
    db 0x3e, 0x3e, 0x3e
    ud2
    ret
.fixed:
    mov eax, 7
    ret
    extable detour_undefined, .fixed
endproc detour_undefined

TARGET detour_cli
    db 0x3e, 0x3e, 0x3e, 0x3e
    cli
    sti
    ret
endproc detour_cli

TARGET detour_rep
    db 0x3e, 0x3e, 0x3e
    rep lodsb
    ret
endproc detour_rep

TARGET detour_fault             ; it faults, and continues at .fixed
    mov rax, [r14 + 0x12345678]
    ret
.fixed:
    mov eax, 6
    ret
    extable detour_fault, .fixed
endproc detour_fault

section .rodata.detour_targets
detour_targets_end:

; struct detour_run { uint64_t regs[15], flags; void (*fn)(void); }; the order of regs is
; that of struct pt_regs

section .bss
current: resq 1
own_sp: resq 1

section .text

; void detour_run(struct detour_run *run): call run->fn with the registers and flags of
; *run, then store the registers and flags to *run. Only one CPU may be in here;
; preemption is off.
proc detour_run
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    push r13
    push r14
    push r15
    pushfq
    mov [rel current], rdi
    mov [rel own_sp], rsp
    push qword [rdi + 15 * 8]
    LOAD_AT rdi, EACH_REGISTER
    popfq
    push rax
    mov rax, [rel current]
    mov rax, [rax + 16 * 8]
    xchg rax, [rsp]
    call [rsp]
    lea rsp, [rsp + 8]
    pushfq
    push rdi
    mov rdi, [rel current]
    STORE_AT rdi, EACH_REGISTER
    pop qword [rdi + 14 * 8]
    pop qword [rdi + 15 * 8]
    cmp rsp, [rel own_sp]
    je .level
    ud2
.level:
    popfq
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
endproc detour_run

; long detour_before_X(long x): return x + 1. A jump at detour_before_X_at, a NOP of one
; byte, reads the bytes behind it as its displacement. The most significant byte of this
; is the displacement of the short branch, which is 0. So the jump leads to a usable
; address only if the branch is evicted, that is, becomes a jump as well.
%macro BEFORE 2+
proc detour_before_%1
    mov ecx, 2
    test rsp, rsp
    global detour_before_%1_at
detour_before_%1_at:
    times 3 nop
    %2
.on:
    times 8 nop
    lea rax, [rdi + 1]
    ret
endproc detour_before_%1
%endmacro

BEFORE jcc, jz short .on
BEFORE loop, loop .on
BEFORE jrcxz, jrcxz .on

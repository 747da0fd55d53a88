; detour_return.asm - the entry of a function that nothing but a return probe is on: what
; kretprobe_entry() does where that is simple, without an image of the registers.
;
; Runs with preemption and interrupts as the program has them. The thread may be switched out
; at any instruction and go on on another CPU: what is used is its own, its stack and the
; shadow of that. Whoever unregisters waits for those who are in here.
;
; Simple is: no hit is active on this CPU, it is no NMI, the call is on the thread's own
; stack, of which enough is left, deeper than all that the shadow has, there is an entry left,
; and the return address is near and has not been exchanged. All of that is looked at at
; once. What isn't simple is done with an image, by detour_call. One of the two leaves the
; status flags as they are, for functions of which nobody knows that they don't read those of
; their caller.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"

extern detour_call, detour_call_dead
extern kretprobe_trampoline
extern shadow_nobody            ; struct shadow

%define SAVED_REGISTERS rax, rcx, rdx, rsi, rdi, r8, r9
FLAGS equ 7 * 8                 ; as lahf and seto leave them in ax
SAVED equ 8 * 8
WORD_0 equ SAVED                ; where the cell goes on
SLOT equ SAVED + 8              ; the function's return address

%macro STORE 1-*
  %assign at 0
  %rep %0
    mov [rsp + at], %1
    %assign at at + 8
    %rotate 1
  %endrep
%endmacro

%macro LOAD 1-*
  %assign at 0
  %rep %0
    mov %1, [rsp + at]
    %assign at at + 8
    %rotate 1
  %endrep
%endmacro

; AND_CARRY reg: r8 &= all ones if CF, else 0
%macro AND_CARRY 1
    sbb %1, %1
    and r8, %1
%endmacro

section .text.detour progbits alloc exec nowrite align=64

; RESTORE saves_flags: as on entry
%macro RESTORE 1
  %if %1
    mov rax, [rsp + FLAGS]
    add al, 0x7f                        ; OF
    sahf
  %endif
    LOAD SAVED_REGISTERS
    lea rsp, [rsp + SAVED]
%endmacro

; RETURN name, saves_flags, what does the rest: a routine, and its rows in the table of
; struct detour_code.
; In:   [rsp] = where the cell goes on, [rsp + 8] = the return address
; Out:  there, all registers as they were; status flags only if it saves them
%macro RETURN 3
proc %1, 64
    [section .rodata_detour_codes progbits alloc noexec nowrite align=8]
    dq %1, 0, 0, %1.ret, SAVED / 8
    dq %1.jmp, 0, 0, %1.jmp, 0
    __?SECT?__
    lea rsp, [rsp - SAVED]
    STORE SAVED_REGISTERS
  %if %2
    lahf
    seto al
    mov [rsp + FLAGS], rax
  %endif
    mov rsi, [rsp + WORD_0]
    inc rsi
    or rsi, 31
    mov rsi, [rsi - 7]
    mov rsi, [rsi + SITE_PLAIN]
    mov rax, [gs:PERCPU_THREAD_PROBE]
    test rax, rax
    cmovz rax, [rel nobodys_shadow]
    mov rdi, [rax + SHADOW_LAST]
    lea rdx, [rsp + SLOT]
    mov rcx, [rax + SHADOW_TOP]
    sub rcx, rdx                        ; bytes below the top
    lea rdx, [rcx - 1]
    cmp rdx, [rax + SHADOW_LEN]         ; on this stack
    sbb r8, r8
    lea rdx, [rcx + REGS_SIZE + STACK_MIN]
    cmp rdx, [rax + SHADOW_LEN]         ; with room for the handler, later
    AND_CARRY rdx
    cmp [rdi + ENTRY_BELOW], ecx        ; deeper than the latest
    AND_CARRY rdx
    cmp rdi, [rax + SHADOW_LIMIT]       ; not full
    AND_CARRY rdx
    mov r9, [rsp + SLOT]
    sub r9, kretprobe_trampoline
    mov rdx, r9
    neg rdx                             ; not exchanged
    AND_CARRY rdx
    movsxd rdx, r9d                     ; near
    sub rdx, r9
    not r8
    or r8, rdx
    mov edx, [gs:PERCPU_NMI_DEPTH]
    or r8, rdx
    mov edx, [gs:CPU_DEPTH]
    or r8, rdx
    cmp qword [gs:PERCPU_PROBE], 1      ; the CPU is ready for probes
    sbb rdx, rdx
    or r8, rdx
    cmp rsi, 1                          ; still what it is for
    sbb rdx, rdx
    or r8, rdx
    jnz .not_simple
    lea rdx, [rdi + ENTRY_SIZE]
    mov [rax + SHADOW_LAST], rdx        ; claimed before it is filled
    mov [rdx + ENTRY_RET], r9d
    mov [rdx + ENTRY_HOLDER], rsi
    mov [rdx + ENTRY_BELOW], ecx
    mov qword [rsp + SLOT], kretprobe_trampoline
    mov eax, [rsi + HOLDER_COUNTER]
    inc qword [gs:COUNTERS_OFF + rax * 8]
    RESTORE %2
.ret:
    ret
.not_simple:
    RESTORE %2
.jmp:
    jmp %3
endproc %1
nokprobe %1
%endmacro

    RETURN detour_return, 1, detour_call
    RETURN detour_return_dead, 0, detour_call_dead

section .rodata
align 8
nobodys_shadow: dq shadow_nobody

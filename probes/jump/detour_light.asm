; detour_light.asm - a detour for one light handler: patterns like those of
; detour_specialized.asm.
; No image, and of its entry in hits[] only that it is taken, which keeps the thread on its
; CPU. A word of the CPU's says where its struct plat_light is, which is all that others need.
;
;   higher   | program's stack      |
;            | rdi ... r11          |  what C may change
;            | flags                |  as lahf and seto leave them, where they are live
;            | rbp                  |  should the handler never return: it is the frame
;            | struct kprobe *      |  pointer, and so changed by every handler
;   lower    +----------------------+  <- rsp = struct plat_light *
;
; A handler of which more could be lost, since it calls others or changes more, finds all of
; that saved: the real flags, r15 to r12, rbx and the count of preemption, in front of rbp.
; What it does to that count, and to flags of the CPU, is undone when it has returned.
;
; Common is: what admit.inc says, the CPU is in no interrupt either, and DF is clear; lodsb
; tells which way it points, in less time than pushfq. What is rare calls the code that all
; sites share, with all registers and flags as they came. That finds the site by its return
; address, as at the end of a cell.
;
; Whether the CPU is ready is not asked: before there are cells all CPUs are.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "probes/jump/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"
%include "probes/jump/pattern.inc"

extern detour_call, detour_call_dead

bits 64

KEPT_LEN equ 8 * 8                      ; from struct plat_light to the real flags
LINE equ 32                             ; at whose end, behind a call, the site is
CALL_LEN equ 5
JMP_LEN equ 5

%define CPU(field) gs:field
%define CHANGED_BY_C rdi, rsi, rdx, rcx, rax, r8, r9, r10, r11
%define KEPT_BY_C r15, r14, r13, r12, rbx

; POP_STATUS: as lahf and seto have left them. Lost: rax
%macro POP_STATUS 0
    pop rax
    add al, 0x7f                        ; OF
    sahf
%endmacro

; LIGHT name, whether status flags matter, whether all is kept: struct plat_pattern.
%macro LIGHT 3
    PATTERN
  %if %3
%%flags_changed:
    push qword [rsp + KEPT_LEN]
    popfq
    jmp %%flags_same
  %endif
%%rare:
  %if %3
    lea rsp, [rsp + KEPT_LEN]
    popfq
  %else
    lea rsp, [rsp + 2 * 8]
   %if %2
    POP_STATUS
   %endif
  %endif
    POP CHANGED_BY_C
    times (8 * LINE - CALL_LEN - JMP_LEN - 8 - ($ - %$code)) % LINE nop
  %if %2
    call detour_call
  %else
    call detour_call_dead
  %endif
    HOLE HOLE_SHARED
    jmp strict near %$end
    HOLE HOLE_COPY
    dq 0
    HOLE HOLE_SITE

    PATTERN_ENTRY
    PUSH CHANGED_BY_C
  %if %3
    pushfq
    PUSH KEPT_BY_C
    push qword [gs:PERCPU_PREEMPT_COUNT]
  %elif %2
    lahf
    seto al
    push rax
  %endif
    push rbp
    mov rdi, strict qword 0
    HOLE HOLE_PROBE
    push rdi
    mov rsi, rsp
    lodsb
    sub rsi, rsp                        ; 1, or -1 with DF set
    ADMIT NO_INTERRUPT, rdi, rsi
    jnz %%rare
    ENTER_LIGHT
    inc qword [gs:0]
    HOLE HOLE_COUNTER
    mov rsi, strict dword 0
    HOLE HOLE_ADDR
    call %%handled                      ; the handler
%%handled:
    HOLE HOLE_HANDLER
  %if %3
    mov eax, [rsp + 2 * 8]
    mov [gs:PERCPU_PREEMPT_COUNT], eax
    pushfq
    pop rax
    xor eax, [rsp + KEPT_LEN]
    test eax, FLAGS_OF_CPU
    jnz %%flags_changed
%%flags_same:
  %endif
    HIT_END 0, CPU_LIGHT
    SWITCH_IF_DUE
  %if %3
    lea rsp, [rsp + KEPT_LEN]
    pop rcx
   %if %2
    STATUS_FLAGS ch, cl
   %endif
  %else
    lea rsp, [rsp + 2 * 8]
   %if %2
    POP_STATUS
   %endif
  %endif
    POP CHANGED_BY_C
    PATTERN_END %1
%endmacro

    LIGHT detour_light, 1, 0
    LIGHT detour_light_keep, 1, 1

; The status flags are written before they are read again, whatever way the program goes.
    LIGHT detour_light_dead, 0, 0
    LIGHT detour_light_keep_dead, 0, 1

; detour_light.asm - patterns, like those of detour_specialized.asm, for a site with one
; light handler.
;
; The detour builds no image. It claims the first entry of hits[] in struct probe_cpu, but
; writes nothing into it: a thread stays on its CPU while an entry is claimed. It stores a
; pointer to the struct plat_light below in the struct probe_cpu. From this pointer other
; code, such as the handling of a fault in the handler, learns all that it needs of the hit.
;
;   higher   | program's stack      |
;            | rdi ... r11          |  the registers that C code may change
;            | flags                |  by lahf and seto, only if the flags are live here
;            | rbp                  |  (see below)
;            | struct kprobe *      |
;   lower    +----------------------+  <- rsp = struct plat_light *
;
; Every C function changes rbp, its frame pointer, and restores it before it returns. A
; handler that is given up does not return. So the detour saves rbp for it.
;
; A handler that calls other functions, or changes other registers, may be given up before
; more registers than rbp are restored. The "keep" patterns are for such handlers. In the
; place of the flags by lahf they save all flags by pushfq, then r15 to r12, rbx and the
; preemption count. If the handler returns with that count changed, or one of FLAGS_OF_CPU,
; the detour puts the old value back.
;
; This code handles a hit only if the conditions of admit.inc hold, the CPU is in no
; interrupt, and DF is clear. The detour sees DF by a lodsb from its own stack, which moves
; rsi up or down; that takes less time than pushfq. Any other hit goes to the shared code:
; this code first loads the program's registers and flags again, and then calls
; detour_call. Behind that call lies the address of the site, as at the end of each cell.
; So detour_call finds the site by its return address, as it does for any other cell.
;
; This code does not check that the CPU is ready for probes: all CPUs are ready before the
; first detour is made.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"
%include "probes/jump/pattern.inc"

extern detour_call, detour_call_dead

bits 64

KEPT_LEN equ 8 * 8                      ; from struct plat_light to the real flags
LINE equ 32                             ; the site is at the end of the line of the call
CALL_LEN equ 5
JMP_LEN equ 5

%define CPU(field) gs:field
%define CHANGED_BY_C rdi, rsi, rdx, rcx, rax, r8, r9, r10, r11
%define KEPT_BY_C r15, r14, r13, r12, rbx

; POP_STATUS: load the status flags from the word that lahf and seto have made. Lost: rax
%macro POP_STATUS 0
    pop rax
    add al, 0x7f                        ; OF
    sahf
%endmacro

; LIGHT name, live, keep: a pattern, struct plat_pattern. @live: whether the program may
; still read the status flags. @keep: whether it is one of the "keep" patterns.
%macro LIGHT 3
    PATTERN
  %if %3
%%flags_changed:
    push qword [rsp + KEPT_LEN]
    popfq
    jmp strict near %%flags_same
    HOLE HOLE_ACROSS
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
    call %%handled                      ; in its place: the code of the programs
%%handled:
    HOLE HOLE_HANDLER
  %if %3
    mov eax, [rsp + 2 * 8]
    mov [gs:PERCPU_PREEMPT_COUNT], eax
    pushfq
    pop rax
    xor eax, [rsp + KEPT_LEN]
    test eax, FLAGS_OF_CPU
    jnz strict near %%flags_changed
    HOLE HOLE_ACROSS
%%flags_same:
  %endif
    HIT_END 0, CPU_LIGHT
    SWITCH_IF_DUE gs:PERCPU_DUE
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

; For sites where the status flags are dead: on each path the program writes them before it
; reads them.
    LIGHT detour_light_dead, 0, 0
    LIGHT detour_light_keep_dead, 0, 1

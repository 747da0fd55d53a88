; detour_specialized.asm - patterns for specialized detours. Such a detour is a copy of
; a pattern, made for one site.
;
; At a site with one handler it does the work of detour_call, but only in the common case:
; the conditions of admit.inc hold, and DF is clear. In all other cases it calls C code
; (jump.c). The image lies at the same distance from the program's stack as in detour_call;
; so one word next to the program's stack is not used.
;
; The code does not check that the CPU is ready for probes: all CPUs are ready before the
; first detour is made.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"
%include "probes/jump/pattern.inc"

extern kprobe_jump_handler  ; bool (struct pt_regs *, struct site *, struct probe_cpu *)
; void (struct pt_regs *, in a cell, struct probe_cpu *, bool)
extern kprobe_specialized_leave
extern switch_if_due

bits 64

STACK equ WORD_0 + 8                    ; from the start of the image to the program's stack

; CPU field: an operand for a field that is counted from GS, in the CPU's struct probe_cpu
; or near it. IMAGE field: an operand for a field of the image. It is counted from r15,
; which points into the image: for the fields that are used here the displacement then has
; one byte. Short instructions matter, because all of the code has to fit in a cell.
%define CPU(field) r13 + field - ROOM_OFF
%define IMAGE(field) r15 + field - REGS_FLAGS

; SPECIALIZED name, live, leaf: a pattern, struct plat_pattern. @live: whether the program
; may still read the status flags. @leaf: whether the handler cannot change a flag of the CPU,
; so that no pushfq behind it has to ask; that takes an emulator a twelfth of the hit.
%macro SPECIALIZED 3
    PATTERN
%%rare:
    call detour_specialized_rare
    HOLE HOLE_MOVED
    jmp %%ran
%%changed:
    call detour_specialized_leave       ; it finds the site by its return address
    HOLE HOLE_MOVED

    PATTERN_ENTRY
    lea rsp, [rsp - (STACK - REGS_SS - 8)]
    push SEL_DATA
    lea rsp, [rsp - 8]                  ; sp is filled in below
    pushfq
    push SEL_CODE
    push strict dword 0
    HOLE HOLE_IP
    push 0                              ; no error code; the vector is filled in below
    push 0                              ; aux
    PUSH EACH_REGISTER_DOWN
    lea r15, [rsp + REGS_FLAGS]
  %if %3
    PREEMPT_OFF
    mov r13, [gs:PERCPU_PROBE]
  %else                                 ; the same, in fewer bytes
    inc dword [gs:PERCPU_PREEMPT_COUNT]
    mov r13, [gs:PERCPU_PROBE]
    mov r12d, [CPU(PERCPU_PREEMPT_COUNT)]
    dec r12d
  %endif
    lea r14, [IMAGE(STACK)]
    mov [IMAGE(REGS_SP)], r14
    mov byte [IMAGE(REGS_ORIG_AX) + 4], VECTOR_BP
    mov rdi, strict qword 0
    HOLE HOLE_PROBE
    mov ebx, [IMAGE(REGS_FLAGS)]
    mov rdx, rbx
    shl rdx, 63 - FLAGS_DF_BIT
    ADMIT FOR_ENTRY, rdi, rdx
    jnz %%rare
    ENTER IS_JUMPED, r12d
    inc qword [gs:0]
    HOLE HOLE_COUNTER
    mov [CPU(HIT_RUNNING)], rdi         ; hit_site() finds the site by this probe
    mov rsi, rsp
    call %%handled                      ; the handler
%%handled:
    HOLE HOLE_HANDLER
    HIT_END d, HIT_RUNNING
%%ran:
    mov ecx, [IMAGE(REGS_FLAGS)]
    xor ecx, ebx
    or ecx, eax
  %if !%3
    pushfq
    pop rdx
    xor edx, ebx
    and edx, FLAGS_OF_CPU
    or ecx, edx
  %endif
    xor r14, [IMAGE(REGS_SP)]
    or rcx, r14
    jnz %%changed
    mov [CPU(PERCPU_PREEMPT_COUNT)], r12d
    SWITCH_IF_DUE CPU(PERCPU_DUE)       ; after a move to another CPU not its word: no harm
  %if %2 && %3
    RESTORE_FLAGS
  %elif %2                              ; more time, in fewer bytes
    STATUS_FLAGS bh, bl
  %endif
    POP EACH_REGISTER_DOWN
    lea rsp, [rsp + STACK - REGS_AUX]
    PATTERN_END %1
%endmacro

    SPECIALIZED detour_specialized, 1, 0
    SPECIALIZED detour_specialized_leaf, 1, 1

; For sites where the status flags are dead: on each path the program writes them before it
; reads them.
    SPECIALIZED detour_specialized_dead, 0, 0
    SPECIALIZED detour_specialized_leaf_dead, 0, 1

; A specialized detour calls both of these routines. The register image lies above the
; return address, and right above that of the C code; rbx, r12 and r13 have the same values
; as in that detour.
section .text.detour.rare progbits alloc exec nowrite align=64

; A condition of the common case does not hold, so C code runs the handlers: of all probes
; that the site has by now. So this code asks for the flags of the CPU in any case. If one has
; changed, or DF was set, the detour sees that flags have changed, because ebx differs.
; In: rdi = the probe. Out: eax = the return value of kprobe_jump_handler()
proc detour_specialized_rare
    pop r14
    frame image
    cld
    btr ebx, FLAGS_DF_BIT
    mov rsi, [rdi + KPROBE_SITE]
    mov rdi, rsp
    mov rdx, r13
    call kprobe_jump_handler
    movzx eax, al
    pushfq
.pushed:
    pop rcx
    xor ecx, ebx
    and ecx, FLAGS_OF_CPU
    xor ebx, ecx
    mov rdx, r14
    lea r14, [IMAGE(STACK)]
    jmp rdx
endproc detour_specialized_rare
nokprobe detour_specialized_rare

; The handler has returned eax, which is not 0, or has changed flags or sp in the register
; image, or has changed a flag of the CPU. The CPU goes on as the register image says, and
; does not return to the detour.
proc detour_specialized_leave
    pop rsi
    frame image
    cld
    xor ecx, ecx
    test eax, eax
    setnz cl
    mov rdi, rsp
    mov rdx, r13
    call kprobe_specialized_leave
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r12d
    jmp switch_if_due
endproc detour_specialized_leave
nokprobe detour_specialized_leave

[section .rodata_detour_pops progbits alloc noexec nowrite align=8]
    dq detour_specialized_rare.pushed
section .rodata
align 8
global detour_specialized_rare_range, detour_specialized_leave_range
detour_specialized_rare_range:  dq detour_specialized_rare, detour_specialized_rare.end
detour_specialized_leave_range: dq detour_specialized_leave, detour_specialized_leave.end

; detour_specialized.asm - a detour that has code of its own: two patterns.
;
; What detour_call does, for one handler, as far as it is common: as admit.inc says, and DF is
; clear. All else is C, jump.c. The image is where detour_call would have it, so the word next
; to the program's stack is not used.
;
; Whether the CPU is ready is not asked: before there are cells all CPUs are.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "probes/jump/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"
%include "probes/jump/pattern.inc"

extern kprobe_jump_handler  ; bool (struct pt_regs *, struct site *, struct probe_cpu *)
extern kprobe_own_leave     ; void (struct pt_regs *, in a cell, struct probe_cpu *, bool)
extern switch_if_due

bits 64

STACK equ WORD_0 + 8                    ; the program's, from the image

; CPU field: what is counted from GS, in the CPU's struct probe_cpu and around it. IMAGE
; field: of the image; high up there is nearer to r15 than to rsp. Short instructions matter:
; all of it has to fit in a cell.
%define CPU(field) r13 + field - ROOM_OFF
%define IMAGE(field) r15 + field - REGS_FLAGS

; OWN name, whether status flags matter: struct plat_pattern.
%macro OWN 2
    PATTERN
%%rare:
    call detour_specialized_rare
    HOLE HOLE_MOVED
    jmp %%ran
%%changed:
    call detour_specialized_leave       ; which finds the site by where it is called from
    HOLE HOLE_MOVED

    PATTERN_ENTRY
    lea rsp, [rsp - (STACK - REGS_SS - 8)]
    push SEL_DATA
    push rsp                            ; made sp below
    pushfq
    push SEL_CODE
    push strict dword 0
    HOLE HOLE_IP
    push 0                              ; no error code; the vector is filled in below
    push 0                              ; aux
    PUSH EACH_REGISTER_DOWN
    inc dword [gs:PERCPU_PREEMPT_COUNT] ; as PREEMPT_OFF, in fewer bytes
    mov r13, [gs:PERCPU_PROBE]
    mov r12d, [CPU(PERCPU_PREEMPT_COUNT)]
    dec r12d
    lea r15, [rsp + REGS_FLAGS]
    add qword [IMAGE(REGS_SP)], STACK - REGS_SS
    mov byte [IMAGE(REGS_ORIG_AX) + 4], VECTOR_BP
    mov rdi, strict qword 0
    HOLE HOLE_PROBE
    mov ebx, [IMAGE(REGS_FLAGS)]
    mov rdx, rbx
    shl rdx, 63 - FLAGS_DF_BIT
    ADMIT NO_NMI, rdi, rdx
    jnz %%rare
    ENTER IS_JUMPED, r12d, rax
    inc qword [gs:0]
    HOLE HOLE_COUNTER
    mov [CPU(HIT_RUNNING)], rdi         ; and so it is of its site: hit_site()
    mov rsi, rsp
    call %%handled                      ; the handler
%%handled:
    HOLE HOLE_HANDLER
    HIT_END d, HIT_RUNNING
%%ran:
    pushfq
    pop rcx
    xor ecx, ebx
    and ecx, FLAGS_OF_CPU
    or ecx, eax
    mov edx, [IMAGE(REGS_FLAGS)]
    xor edx, ebx
    or ecx, edx
    lea rdx, [IMAGE(STACK)]
    xor rdx, [IMAGE(REGS_SP)]
    or rcx, rdx
    jnz %%changed
    PREEMPT_ON
  %if %2
    STATUS_FLAGS bh, bl
  %endif
    POP EACH_REGISTER_DOWN
    lea rsp, [rsp + STACK - REGS_AUX]
    PATTERN_END %1
%endmacro

    OWN detour_specialized, 1

; The status flags are written before they are read again, whatever way the program goes.
    OWN detour_specialized_dead, 0

; A specialized detour calls both of these routines. The register image lies above the
; return address; rbx, r12 and r13 have the same values as in that detour.
section .text.detour.rare progbits alloc exec nowrite align=64

; A condition of the common case does not hold, so C code runs the handlers.
; In: rdi = the probe. Out: eax = what the handlers return
proc detour_specialized_rare
    cld
    btr ebx, FLAGS_DF_BIT               ; so that it is seen to have changed
    mov rsi, [rdi + KPROBE_SITE]
    lea rdi, [rsp + 8]
    mov rdx, r13
    call kprobe_jump_handler
    movzx eax, al
    ret
endproc detour_specialized_rare
nokprobe detour_specialized_rare

; The handler has returned eax, which is not 0, or has changed more of the register image
; than general registers and status flags. The CPU goes on as the register image says, and
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
    call kprobe_own_leave
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r12d
    jmp switch_if_due
endproc detour_specialized_leave
nokprobe detour_specialized_leave

section .rodata
align 8
global detour_specialized_rare_range, detour_specialized_leave_range
detour_specialized_rare_range:  dq detour_specialized_rare, detour_specialized_rare.end
detour_specialized_leave_range: dq detour_specialized_leave, detour_specialized_leave.end

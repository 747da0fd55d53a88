; kretprobe_trampoline.asm - the place that a function with a return probe returns to.
;
; Takes no trap, and is entered by the function's own `ret`. From its first instruction to
; its last an interrupt or an NMI may come between any two: nothing below rsp is needed, and
; where the function is to return to is known at each of them.
;
;   1. An image of all registers is built right above which rsp was when the function was
;      called; the function's return address was where regs.ss is now. Preemption off: the
;      handlers' CPU stays the same, and unregister_kretprobe() waits.
;   2. Up to here the shadow knows where it goes, from here on the image.
;   3. The common case, which is what kretprobe_return() does where one instance without data
;      or limit returns, its probe is on and has a handler, and no hit is active on this CPU.
;      All conditions are looked at at once. The instance lies in the image, in aux and
;      orig_ax, which have no use here, so that the image is right above the handler's
;      frame.
;   4. All others.
;   5. Where nothing but registers has changed, the way back needs neither popfq nor IRET:
;      the return address goes to where it was, above all that is loaded, status flags come
;      back with sahf and a rotation, and rsp is moved last.
;   6. Else the image is left as a trap leaves it: also when the handler has changed flags of
;      the CPU, such as IF, and left them so.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "probes/jump/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"

extern kretprobe_return         ; void kretprobe_return(struct pt_regs *, struct probe_cpu *)
extern shadow_none              ; struct shadow
extern kretprobe_none           ; struct kretprobe
extern holder_none              ; struct kretprobe_holder
extern shadow_unwind            ; void shadow_unwind(struct shadow *, uint32_t below)
extern switch_if_due

; OR_IF_ZERO reg, scratch: rax |= all ones if reg is 0
%macro OR_IF_ZERO 2
    cmp %1, 1
    sbb %2, %2
    or rax, %2
%endmacro

%define CPU(field) gs:field

section .text.image

; In:   rsp = behind the return address; rax, rdx = what the function returns
; Out:  at the return address, all registers and flags as they were, but for what handlers
;       have changed
proc kretprobe_trampoline, 64
    frame returns
    lea rsp, [rsp - 16]         ; 1
    pushfq
    lea rsp, [rsp - REGS_FLAGS]
    STORE EACH_REGISTER
    mov r11d, [gs:PERCPU_PREEMPT_COUNT] ; as PREEMPT_OFF
    lea eax, [r11 + 1]
    mov [gs:PERCPU_PREEMPT_COUNT], eax
    lea rdi, [rsp + REGS_SIZE]
    mov [rsp + REGS_SP], rdi
    mov qword [rsp + REGS_SS], SEL_DATA
    mov qword [rsp + REGS_CS], SEL_CODE
    mov ebx, [rsp + REGS_FLAGS]
    cld
    mov r12, [gs:PERCPU_THREAD_PROBE]
    test r12, r12
    cmovz r12, [rel no_shadow]
    mov r13, [r12 + SHADOW_LAST]
    movsxd r10, dword [r13 + ENTRY_RET]
    lea r10, [r10 + kretprobe_trampoline]
    mov [rsp + REGS_IP], r10
.known:                         ; 2
    frame returning
    mov edx, [r12 + SHADOW_TOP]
    sub edx, edi
    add edx, 8
    mov ecx, [r13 - ENTRY_SIZE + ENTRY_BELOW]
    xor ecx, edx
    xor eax, eax
    OR_IF_ZERO ecx, rcx         ; another one returns here
    xor edx, [r13 + ENTRY_BELOW]
    or rax, rdx
    mov r14, [r13 + ENTRY_HOLDER]
    test r14, r14
    cmovz r14, [rel no_holder]       ; an NMI has come between claim and fill
    or rax, [r14 + HOLDER_EXTRAS]
    mov r15, [r14 + HOLDER_RP]
    test r15, r15
    cmovz r15, [rel no_retprobe]
    mov r9, [r15 + KRETPROBE_HANDLER]
    OR_IF_ZERO r9, rcx
    ADMIT_CPU c, NO_NMI, r15    ; there was room on the stack at the call
    mov r14d, r11d              ; for ways that come back to .leave
    or rax, rcx
    jnz .rare
    ENTER IS_JUMPED | IS_RETURN, r14d, rcx ; 3
    mov [CPU(HIT_RUNNING)], r15 ; and so it is of its site: hit_site()
    mov [rsp + REGS_AUX], r15   ; struct kretprobe_instance
    mov [rsp + REGS_ORIG_AX], r10
    lea rdi, [rsp + REGS_AUX]
    mov rsi, rsp
    call r9
    HIT_END 0, HIT_RUNNING
    cmp [r12 + SHADOW_LAST], r13
    jne .left_behind
.popped:
    mov dword [r13 + ENTRY_BELOW], 0
    lea r13, [r13 - ENTRY_SIZE]
    mov [r12 + SHADOW_LAST], r13
.leave:
    and ebx, ~FLAGS_DF
    pushfq
.flags_pushed:
    pop rax
    xor eax, ebx
    and eax, FLAGS_OF_CPU
    mov rcx, [rsp + REGS_FLAGS]
    xor rcx, rbx
    or rax, rcx
    lea rcx, [rsp + REGS_SIZE]
    xor rcx, [rsp + REGS_SP]
    or rax, rcx
    jnz .as_a_trap
    mov [gs:PERCPU_PREEMPT_COUNT], r14d
    SWITCH_IF_DUE
    mov rcx, [rsp + REGS_IP]    ; 5
    mov [rsp + REGS_SS], rcx
    RESTORE_FLAGS
    LOAD EACH_REGISTER
    lea rsp, [rsp + REGS_SS]
.ret:
    frame returned
    ret

.rare:                          ; 4
    mov qword [rsp + REGS_AUX], 0
    mov qword [rsp + REGS_ORIG_AX], 0
    mov rdi, rsp
    mov rsi, [gs:PERCPU_PROBE]
    call kretprobe_return
    jmp .leave

.left_behind:                   ; the handler has called functions and not come back from all
    cld
    mov rdi, r12
    mov esi, [r13 + ENTRY_BELOW]
    call shadow_unwind
    jmp .popped

.as_a_trap:                     ; 6
    frame image
    cld
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r14d
    jmp switch_if_due
endproc kretprobe_trampoline
nokprobe kretprobe_trampoline

section .rodata
align 8
no_shadow:    dq shadow_none
no_retprobe:  dq kretprobe_none
no_holder:    dq holder_none

; Its parts: up to `known` the shadow tells where it goes, at `ret` the top of the stack, and
; elsewhere the image, where the stack ends; at `flags_pushed` one word further up.
global kretprobe_trampoline_known, kretprobe_trampoline_ret, kretprobe_trampoline_end
global kretprobe_trampoline_flags_pushed
kretprobe_trampoline_flags_pushed: dq kretprobe_trampoline.flags_pushed
kretprobe_trampoline_known: dq kretprobe_trampoline.known
kretprobe_trampoline_ret:   dq kretprobe_trampoline.ret
kretprobe_trampoline_end:   dq kretprobe_trampoline.end

; kretprobe_trampoline.asm - the code that a function with a return probe returns to.
;
; The function's own `ret` leads here; there is no trap. An interrupt or an NMI may come
; between any two instructions. So this code keeps no data below rsp, and at each of its
; instructions a backtrace can find the real return address.
;
;   1. An image of all registers is built on the stack. It ends at the address that rsp has
;      after the function's `ret`; regs.ss is the word where the function's return address
;      was. Preemption goes off: the handlers stay on this CPU, and unregister_kretprobe()
;      waits for threads that are here.
;   2. Before this point the real return address is in the shadow. From here on it is in the
;      image, as regs.ip.
;   3. The common case is handled here, as kretprobe_return() would: one instance without
;      data and limit returns, its probe is enabled and has a handler, and no hit is active
;      on this CPU. The conditions are collected into one word, and tested by one jump. The
;      instance is stored in the image, in aux and orig_ax, which have no other use here; so
;      the image is right above the handler's frame.
;   4. In all other cases kretprobe_return() is called.
;   5. If the handlers have changed only general registers and status flags, the CPU goes on
;      without popfq and IRET. The return address is stored in its old place, which is above
;      all words that are loaded. Status flags are loaded by sahf and a rotation. rsp
;      changes last, and `ret` follows.
;   6. Otherwise the image is left as a trap leaves it. This is also done when the handler
;      has changed a flag of the CPU itself, such as IF, and has not changed it back. If the
;      handler has set ip, the new ip may lie under the jump of a region: ext_resume(). After
;      kretprobe_return() in an NMI, ip always looks as if it were set, because step 1 reads
;      the shadow of the thread.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"

extern kretprobe_return         ; void kretprobe_return(struct pt_regs *, struct probe_cpu *)
extern shadow_none              ; struct shadow
extern kretprobe_none           ; struct kretprobe
extern holder_none              ; struct kretprobe_holder
extern shadow_unwind            ; void shadow_unwind(struct shadow *, uint32_t below)
extern switch_if_due
extern ext_resume               ; void ext_resume(const struct site *, struct pt_regs *)

%define CPU(field) gs:field
FLAGS_STATUS equ 0x8d5          ; CF, PF, AF, ZF, SF, OF

section .text.image

; In:   rsp = one word above the place of the return address; rax, rdx = the return value
; Out:  continues at the real return address. All registers and flags are as the function
;       has left them, except where a handler has changed them in the image.
proc kretprobe_trampoline, 64
    frame returns
    lea rsp, [rsp - 16]         ; 1
    pushfq
    lea rsp, [rsp - REGS_FLAGS]
    STORE EACH_REGISTER
    mov r14d, [gs:PERCPU_PREEMPT_COUNT] ; as PREEMPT_OFF
    lea eax, [r14 + 1]
    mov [gs:PERCPU_PREEMPT_COUNT], eax
    lea rdi, [rsp + REGS_SIZE]
    mov [rsp + REGS_SP], rdi
    mov qword [rsp + REGS_SS], SEL_DATA
    mov qword [rsp + REGS_CS], SEL_CODE
    cld
    mov r12, [gs:PERCPU_THREAD_PROBE]
    lea rcx, [rel shadow_none]
    test r12, r12
    cmovz r12, rcx
    mov r13, [r12 + SHADOW_LAST]
    movsxd r15, dword [r13 + ENTRY_RET]
    lea r15, [r15 + kretprobe_trampoline]
    mov [rsp + REGS_IP], r15
.known:                         ; 2
    frame returning
    mov edx, [r12 + SHADOW_TOP]
    sub edx, edi
    add edx, 8
    mov ecx, [r13 - ENTRY_SIZE + ENTRY_BELOW]
    xor ecx, edx
    cmp ecx, 1                  ; the group has a second instance
    sbb rax, rax
    xor edx, [r13 + ENTRY_BELOW]
    or rax, rdx
    mov r11, [r13 + ENTRY_HOLDER]
    lea rcx, [rel holder_none]  ; for an NMI that came between claim and fill
    test r11, r11
    cmovz r11, rcx
    or rax, [r11 + HOLDER_EXTRAS]
    mov r10, [r11 + HOLDER_RP]
    lea rcx, [rel kretprobe_none]
    test r10, r10
    cmovz r10, rcx
    mov r9, [r10 + KRETPROBE_HANDLER]
    cmp r9, 1
    sbb rcx, rcx
    or rax, rcx
    ADMIT_CPU c, FOR_ENTRY, r10    ; stack room was checked when the function was called
    or rax, rcx
    jnz .rare
    ENTER IS_JUMPED | IS_RETURN, r14d ; 3
    mov [CPU(HIT_RUNNING)], r10 ; hit_site() finds the site by this probe
    mov [rsp + REGS_AUX], r10   ; struct kretprobe_instance
    mov [rsp + REGS_ORIG_AX], r15
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
    mov rbx, [rsp + REGS_FLAGS]
    pushfq
.flags_pushed:
    pop rax
    xor rax, rbx
    and rax, ~FLAGS_STATUS
    xor r15, [rsp + REGS_IP]
    or rax, r15
    lea rcx, [rsp + REGS_SIZE]
    xor rcx, [rsp + REGS_SP]
    or rax, rcx
    jnz .as_a_trap
    mov [gs:PERCPU_PREEMPT_COUNT], r14d
    SWITCH_IF_DUE gs:PERCPU_DUE
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

.left_behind:                   ; the handler has given up calls of probed functions
    cld
    mov rdi, r12
    mov esi, [r13 + ENTRY_BELOW]
    call shadow_unwind
    jmp .popped

.as_a_trap:                     ; 6
    frame image
    cld
    xor edi, edi
    mov rsi, rsp
    call ext_resume
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r14d
    jmp switch_if_due
endproc kretprobe_trampoline
nokprobe kretprobe_trampoline

section .rodata
align 8
; Where a backtrace finds the real return address, if an interrupt comes in the trampoline:
; before `known` in the shadow; at `ret` in the word at rsp; everywhere else in the image,
; which begins at rsp, or at `flags_pushed` one word above rsp.
global kretprobe_trampoline_known, kretprobe_trampoline_ret, kretprobe_trampoline_end
global kretprobe_trampoline_flags_pushed
kretprobe_trampoline_flags_pushed: dq kretprobe_trampoline.flags_pushed
kretprobe_trampoline_known: dq kretprobe_trampoline.known
kretprobe_trampoline_ret:   dq kretprobe_trampoline.ret
kretprobe_trampoline_end:   dq kretprobe_trampoline.end

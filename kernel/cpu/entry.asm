; entry.asm - enters the kernel at exceptions, interrupts and NMIs, and goes back.
;
; Owns the 256 stubs and the common entry and exit. No instruction of section .text.entry
; can be probed. There is no user mode: CS, SS and GS are always the kernel's.
;
; The stack at a trap. The CPU aligns RSP to 16 and pushes five words, right below the
; interrupted stack; the stub and the common entry push the other seventeen:
;
;   higher   | interrupted stack |
;            +-------------------+  <- regs.sp, or 8 below it (alignment)
;            | ss sp flags cs ip |  by the CPU
;            | error, vector     |  by the CPU and the stub
;            | aux: CR2 or DR6   |
;            | rdi ... r15       |
;   lower    +-------------------+  <- rsp = struct pt_regs *, 16-byte aligned
;
; The entries of #BP and #DB move the frame down first (MAKE_GAP). An emulated push or
; call writes its word right below regs.sp, and must not write into the frame.
;
; The way back is not IRET but `popfq; ret` on the interrupted stack. An IRET inside an
; NMI would unblock NMIs, and the next NMI would overwrite the frame of the first. IRET is
; also slower. The two words that `popfq; ret` pops are written below regs.sp. By then,
; only words of the frame that are no longer needed lie there:
;
;   1. write regs.ip and regs.flags to [regs.sp - 8] and [regs.sp - 16]
;   2. pop all registers, then RSP itself: it now points at these two words
;   3. popfq           interrupts may be on from here
;   4. ret             back in the interrupted code
;
; An interrupt may come between 3 and 4. Its entry completes the return in its own frame
; before other code looks at the frame (FINISH_RETURN). Otherwise the saved ip would be
; that `ret`, and would not tell where the thread goes on.
;
; IRETQ is used in three cases:
;   - TF is set in the image: after `popfq` the single-step trap would come one
;     instruction too early. Not inside an NMI
;   - RF is set in the image: it lets the CPU go past an instruction that a debug register
;     watches, and `popfq` clears it. Not inside an NMI
;   - an NMI ends: here IRETQ is meant to unblock NMIs

%include "asm_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"

extern trap_dispatch      ; void trap_dispatch(struct pt_regs *)
extern irq_dispatch       ; void irq_dispatch(struct pt_regs *)
extern nmi_dispatch       ; void nmi_dispatch(struct pt_regs *)
extern sample_nmi_ends    ; void sample_nmi_ends(uint64_t begun)
extern fatal_dispatch     ; void fatal_dispatch(struct pt_regs *)
extern trap_bp_handler    ; bool (*trap_bp_handler)(struct pt_regs *, void *probe)
extern trap_db_handler    ; bool (*trap_db_handler)(struct pt_regs *, void *probe)
extern trap_fault_handler ; bool (*trap_fault_handler)(struct pt_regs *)
extern trap_nmis_serialise ; uint8_t
extern trap_resume_handler ; void (*trap_resume_handler)(struct pt_regs *, void *probe)
extern schedule_irq       ; void schedule_irq(struct pt_regs *)
extern debug_regs_wake    ; void debug_regs_wake(void)
extern debug_regs_set_aside ; uint64_t debug_regs_set_aside(const struct pt_regs *regs)
extern debug_regs_give_back ; void debug_regs_give_back(uint64_t dr6)

SEL_CODE equ 0x08
VECTOR_SWITCH equ 0xe3
FLAGS_FIXED equ 1 << 1
FLAGS_TF equ 1 << 8
FLAGS_IF equ 1 << 9
FLAGS_RF equ 1 << 16

; The section begins on a page boundary, and the stubs follow the entry code. So the stubs
; of the exceptions are on the same page as the entry code, and an emulator needs no
; look-up of a page between the two.
section .text.entry progbits alloc exec nowrite align=4096

global entry_text_start
entry_text_start:

; ---- building and taking down struct pt_regs -------------------------------------------

%macro SAVE_REGS 0
    PUSH EACH_REGISTER_DOWN
    frame image
    cld
%endmacro

; RESTORE_REGS: pop all registers but rsp. Then rsp is the address of the aux word.
%macro RESTORE_REGS 0
    POP EACH_REGISTER_DOWN
%endmacro

; FINISH_RETURN: if the interrupted ip is the `ret` of step 4, do in the image what the
; `ret` would do.
%macro FINISH_RETURN 0
    cmp qword [rsp + REGS_IP], trap_exit.window     ; sign-extends: text is above -2 GiB
    jne %%done
    mov rdx, [rsp + REGS_SP]
    mov rax, [rdx]
    mov [rsp + REGS_IP], rax
    add qword [rsp + REGS_SP], 8
%%done:
%endmacro

; CALL_DIRECT handler: call the handler before any code that can be probed. If it returns
; false, handle the trap like all other exceptions.
%macro CALL_DIRECT 1
    mov rdi, rsp
    mov rsi, [gs:PERCPU_PROBE]
    call [rel %1]
    test al, al
    jnz switch_if_due
    mov rdi, rsp
    call trap_dispatch
    jmp trap_exit
%endmacro

; Chain of frame pointers: entry code saves the interrupted rbp in the image, and does not
; change rbp. So a backtrace that starts in a handler goes on in the interrupted code.

; ---- exceptions ------------------------------------------------------------------------

proc trap_entry, 64
    frame trap_error
    push 0                          ; aux
    SAVE_REGS
trap_entry_saved:
    FINISH_RETURN
    mov rdi, rsp
    call [rel trap_fault_handler]
    test al, al
    jnz trap_exit
    mov rdi, rsp
    call trap_dispatch
    jmp trap_exit
endproc trap_entry

; #PF: entry code saves CR2 in the frame before it runs any code that could fault, too.
proc pf_entry, 16
    frame trap_error
    push rax
    mov rax, cr2
    xchg rax, [rsp]
    SAVE_REGS
    jmp trap_entry_saved
endproc pf_entry

; MAKE_GAP vector: move the five words of the CPU, which has pushed nothing else, down by
; 48 bytes: 24 bytes for an emulated call and the two words of the way back, the rest to
; keep the frame aligned. Then push 0 as the error code, and the vector.
%macro MAKE_GAP 1
    sub rsp, 8
    times 5 push qword [rsp + 40]
    push 0
    mov dword [rsp + 4], %1
%endmacro

; #DB: entry code saves DR6 in the frame, as CR2 above, and clears it for the next #DB. The
; upper half of the word tells how often each debug register has changed before DR6 is
; read: an NMI that comes behind that may change the registers, and then the bits of DR6
; are about what is gone.
; The gap is needed because a program that steps itself may come to a jump of the engine:
; then the engine may emulate the instruction there. The pushes may access bytes that a
; debug register watches, and QEMU's TCG may raise the trap a second time at the first
; instruction of the stub: see debug_regs_at_entry().
proc db_entry, 16
    frame trap
    MAKE_GAP 1
    push 0                          ; aux
    SAVE_REGS
    mov eax, [gs:PERCPU_DEBUG_CHANGES]
    mov [rsp + REGS_AUX + 4], eax
.read:
    mov rax, dr6
    mov [rsp + REGS_AUX], eax
    mov eax, 0xffff0ff0
    mov dr6, rax
.cleared:
    FINISH_RETURN
    CALL_DIRECT trap_db_handler
endproc db_entry

proc exc_int3, 64
    frame int3
    MAKE_GAP 3
    push 0                          ; aux
    SAVE_REGS
    FINISH_RETURN
    CALL_DIRECT trap_bp_handler
endproc exc_int3

; ---- the way back ----------------------------------------------------------------------

; trap_exit: go on as the image says. All traps and interrupts but NMI leave here.
; In: rsp = struct pt_regs *
proc trap_exit, 64
    frame image
    test dword [rsp + REGS_FLAGS], FLAGS_TF | FLAGS_RF
    jnz .by_iret
.popf_ret:
    mov rax, [rsp + REGS_SP]
    mov rcx, [rsp + REGS_IP]
    mov rdx, [rsp + REGS_FLAGS]
    sub rax, 16
    lea rsi, [rsp + REGS_SIZE - 16]
    cmp rax, rsi                    ; is sp in the frame or below it?
    jb .move_frame
    mov [rax + 8], rcx
    mov [rax], rdx
    mov [rsp + REGS_ORIG_AX], rax
    frame leaving
    RESTORE_REGS
    mov rsp, [rsp + REGS_ORIG_AX - REGS_AUX]
    frame way_back
    popfq
.window:
    ret

; IRETQ faults if NT is set. A trap has cleared NT, but a detour comes here without a
; trap, with the program's flags: so set the flags.
.by_iret:
    cmp dword [gs:PERCPU_NMI_DEPTH], 0
    jne .popf_ret
    cmp qword [rsp + REGS_CS], SEL_CODE
    jne .pushes
    push FLAGS_FIXED
    popfq
    RESTORE_REGS
    lea rsp, [rsp + 16]             ; aux, orig_ax
    iretq

; A handler has set regs.sp to an address in the frame or below it: move the frame further
; down. If regs.cs is a word that an emulated instruction pushes (stack_push() in
; probes/core/emulate.c), the place of the word is free now. .pushes: the same for IRETQ.
; In: rax = regs.sp - 16
.pushes:
    mov rax, [rsp + REGS_SP]
    sub rax, 16
.move_frame:
    mov rsi, rsp
    lea rdi, [rax - REGS_SIZE - 32]
    and rdi, -16
    mov rsp, rdi
    mov ecx, REGS_SIZE / 8
    rep movsq
    mov ecx, SEL_CODE
    xchg rcx, [rsp + REGS_CS]
    cmp rcx, SEL_CODE
    je trap_exit
    mov [rax + 16], rcx
    jmp trap_exit
endproc trap_exit

; switch_if_due: switch threads if that is due, then do as trap_exit. Interrupts and hits
; end here. While preemption was off, a tick could not switch threads: such a tick may
; have come in the handler of a hit, which may run with interrupts on. Here another thread
; gets its turn, if the image belongs to a thread that may be preempted. schedule_irq also
; tells quiesce() of the end of the hit, if quiesce() has asked for that.
; In:   rsp = struct pt_regs *, interrupts off
; Out:  by trap_exit, maybe on another CPU
proc switch_if_due, 16
    frame image
    cmp word [gs:PERCPU_DUE], 0
    je trap_exit
    cmp dword [gs:PERCPU_PREEMPT_COUNT], 0
    jne trap_exit
    cmp qword [gs:PERCPU_DEPTHS], 0 ; it has interrupted an interrupt or an NMI
    jne trap_exit
    cmp dword [gs:PERCPU_ROOM], 0   ; it has interrupted a hit
    jne trap_exit
    test dword [rsp + REGS_FLAGS], FLAGS_IF
    jz trap_exit
    mov rdi, rsp
    call schedule_irq
    jmp trap_exit
endproc switch_if_due

; VECTOR_SWITCH: a detour raises it to switch threads at the end of a hit, since a detour
; has no image to leave by: see PREEMPT_ON in image.inc.
proc switch_entry, 16
    frame trap_error
    push 0                          ; aux
    SAVE_REGS
    jmp switch_if_due
endproc switch_entry

; trap_resume_hit: finish a hit after its handler has faulted and was given up. The
; handler of the fault writes this address as ip, and the image of the hit as rsp, into
; the image of the fault. All other registers are lost.
; In: rsp = struct pt_regs * of the hit
proc trap_resume_hit, 16
    frame image
    mov rdi, rsp
    mov rsi, [gs:PERCPU_PROBE]
    call [rel trap_resume_handler]
    jmp switch_if_due
endproc trap_resume_hit

; ---- interrupts ------------------------------------------------------------------------

; WAKE: a CPU that changes text does not call halted CPUs (smp_call_awake). So a CPU that
; wakes serialises before it executes text that may have changed: first it says that it is
; awake, then it executes the serialising instruction. If the other CPU, after the change,
; sees it halted, the change came before the serialising instruction.
%macro WAKE 0
    mov byte [gs:PERCPU_HALTED], 0
    xor eax, eax
    cpuid
%endmacro

proc irq_entry, 64
    frame trap_error
    push 0                          ; aux
    SAVE_REGS
    cmp byte [gs:PERCPU_HALTED], 0
    jne .woken
.awake:
    FINISH_RETURN
    inc dword [gs:PERCPU_IRQ_DEPTH]
    shl dword [gs:PERCPU_OWN_WORK], PERCPU_OWN_WORK_SHIFT
    mov eax, [rsp + REGS_VECTOR]
    mov rdx, [gs:PERCPU_IRQ_COUNTS]
    inc qword [rdx + rax * 8]
    mov rdi, rsp
    call irq_dispatch
    shr dword [gs:PERCPU_OWN_WORK], PERCPU_OWN_WORK_SHIFT
    dec dword [gs:PERCPU_IRQ_DEPTH]
    jmp switch_if_due
.woken:
    WAKE
    inc qword [gs:PERCPU_WOKEN_COUNT]
    jmp .awake
endproc irq_entry

; ---- NMI, #DF, #MC: stacks of their own ------------------------------------------------

; The frame is safe: no other NMI can come before the IRETQ below, since traps inside the
; NMI do not return by IRETQ. CR2 is restored for a page fault that the NMI may have
; interrupted. While text is being changed, the NMI serialises first: the CPU may have
; fetched the code that the NMI calls before the change. On a CPU that was halted the NMI
; serialises, too; then the CPU counts as awake until it halts again.
proc nmi_entry, 64
    frame trap
    push 0
    mov dword [rsp + 4], 2
    push rax
    mov rax, cr2
    xchg rax, [rsp]
    SAVE_REGS
    inc dword [gs:PERCPU_NMI_DEPTH]
    shl dword [gs:PERCPU_OWN_WORK], PERCPU_OWN_WORK_SHIFT
    mov al, [rel trap_nmis_serialise]
    or al, [gs:PERCPU_HALTED]
    jz .serialised
    WAKE
    inc qword [gs:PERCPU_NMI_SYNC_COUNT]
.serialised:
    FINISH_RETURN
    rdtsc
    shl rdx, 32
    lea r12, [rax + rdx]
    mov rdi, rsp
    call debug_regs_set_aside
    mov rbx, rax
    mov rdi, rsp
    call nmi_dispatch
    test rbx, rbx
    jz .given_back
    mov rdi, rbx
    call debug_regs_give_back
.given_back:
    mov rdi, r12
    call sample_nmi_ends
    shr dword [gs:PERCPU_OWN_WORK], PERCPU_OWN_WORK_SHIFT
    dec dword [gs:PERCPU_NMI_DEPTH]
    cmp byte [gs:PERCPU_DEBUG_RESTS], 0
    je .awake
    call debug_regs_wake
.awake:
    mov rax, [rsp + REGS_AUX]
    mov rcx, cr2
    cmp rax, rcx
    je .same
    mov cr2, rax
.same:
    RESTORE_REGS
    lea rsp, [rsp + 16]
    iretq
endproc nmi_entry

proc df_entry, 16
    frame trap_error
    mov dword [rsp + 4], 8
    push rax
    mov rax, cr2
    xchg rax, [rsp]
    SAVE_REGS
    mov rdi, rsp
    call fatal_dispatch
    ud2
endproc df_entry

proc mc_entry, 16
    frame trap
    push 0
    mov dword [rsp + 4], 18
    push 0
    SAVE_REGS
    mov rdi, rsp
    call fatal_dispatch
    ud2
endproc mc_entry

; ---- the stubs -------------------------------------------------------------------------
; entry_stubs[N] has 16 bytes. It pushes 0 if the CPU has pushed no error code, stores the
; vector in the upper half of this word, and jumps to the common entry. The stubs of #DB,
; NMI, #BP, #DF and #MC only jump: their entries do the rest. For example:
;
;   14 #PF:  mov dword [rsp+4], 14 / jmp pf_entry
;   64 IRQ:  push 0 / mov dword [rsp+4], 64 / jmp irq_entry

%define HAS_ERROR(n) (n == 8 || (n >= 10 && n <= 14) || n == 17 || n == 21 || \
                      n == 29 || n == 30)

    align 64, db 0xcc
    global entry_stubs:function (entry_stubs.end - entry_stubs)
entry_stubs:
%assign n 0
%rep 256
    align 16, db 0xcc
  %if n == 3
    frame int3
  %elif HAS_ERROR(n)
    frame trap_error
  %else
    frame trap
  %endif
  %if n == 1
    jmp db_entry
  %elif n == 2
    jmp nmi_entry
  %elif n == 3
    jmp exc_int3
  %elif n == 8
    jmp df_entry
  %elif n == 18
    jmp mc_entry
  %else
    %if !(HAS_ERROR(n))
    push 0
    %endif
    mov dword [rsp + 4], n
    %if n == 14
    jmp pf_entry
    %elif n == VECTOR_SWITCH
    jmp switch_entry
    %elif n < 32
    jmp trap_entry
    %else
    jmp irq_entry
    %endif
  %endif
%assign n n + 1
%endrep
    align 16, db 0xcc
entry_stubs.end:

global entry_text_end
entry_text_end:

; ---- idle ------------------------------------------------------------------------------

section .text
; void cpu_idle_wait(void): enable interrupts and halt; no interrupt can come between the
; two. Only an interrupt or an NMI ends the halt, so the CPU executes entry code first
; after it.
; In: interrupts off. Out: interrupts on.
proc cpu_idle_wait
    mov byte [gs:PERCPU_HALTED], 1
    sti
    hlt
.halted:
    ret
endproc cpu_idle_wait
; After the first instruction, other CPUs take this CPU for halted, and change text
; without it. So it may execute no text that can change: not the way back from a copy of
; the first instruction, and no jump in place of sti.
nokprobe_range cpu_idle_wait, cpu_idle_wait.halted, \
    'from here to hlt other CPUs take this one for halted'

section .rodata
align 8
global db_entry_read, db_entry_cleared ; where DR6 is read, and where it has been cleared
db_entry_read: dq db_entry.read
db_entry_cleared: dq db_entry.cleared
global cpu_idle_halted              ; the ip of the interrupt that ends the halt
cpu_idle_halted: dq cpu_idle_wait.halted

code_sections .text.entry, .text

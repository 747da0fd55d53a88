; detour.asm - what the engine's jumps call: it builds the register image and goes on from it.
;
; A jump at a probed instruction leads to a cell (probes/jump/detour.c), which calls one of
; these. So on entry the stack holds, from the top:
;
;   word 0     where the program goes on, in a cell of the engine
;   word 1     only at a direct call: the return address that it has pushed
;
; and all registers and flags are the program's. Below these words the image is built, as a
; trap would have done, but without one:
;
;   higher   | program's stack   |  <- regs.sp
;            | (word 1)          |
;            | word 0            |
;            | (gap)             |
;            | ss sp flags cs ip |
;            | error, vector     |
;            | aux               |
;            | rdi ... r15       |
;   lower    +-------------------+  <- rsp = struct pt_regs *
;
; A word that is pushed for the program, by a handler or by what emulates a call, lands in
; word 0 or in the gap. The stack is as aligned as the program's was.
;
; The way on is `ret`, into the cell, with the registers of the image. Status flags are put
; back one by one, since `popfq` takes several times as long; other flags have not changed.
; But if they have (DF is cleared for C code, and changed if it was set), or ip or sp, which
; only the image can express, then the image is left as after a trap, by trap_exit. There
; interrupts go off before preemption goes on: a thread that is preempted in trap_exit could
; not be seen to be on its way to a cell.
;
; An ip in here means that the program is at a probed instruction. Where word 0 is then
; follows from the ip alone, by detour_codes.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "probes/jump/registers.inc"
%include "probes/jump/image.inc"
%include "probes/jump/admit.inc"
%include "probes/jump/follow.inc"

extern kprobe_jump_rest     ; bool (struct pt_regs *, struct kprobe *, struct probe_cpu *)
extern kprobe_jump_handler  ; bool (struct pt_regs *, struct site *, struct probe_cpu *)
extern kprobe_image_handler ; void (the same)
extern kprobe_post_handler  ; bool (the same)
extern kprobe_jump_leave    ; void (the same, bool has_set_ip)
extern switch_if_due

%define CPU(field) r13 + field

; BUILD words: the image, below that many words. rbx = the program's flags, r13 = the CPU's
; area, r14 = site; preemption off, r12.
%macro BUILD 1
    lea rsp, [rsp - GAP - 16]               ; ss, sp
.pushf:
    pushfq
.pushed:
    lea rsp, [rsp - REGS_FLAGS]
    STORE EACH_REGISTER
    PREEMPT_OFF
    mov r13, [gs:PERCPU_SELF]
    lea rax, [rsp + WORD_0 + 8 * %1]
    mov [rsp + REGS_SP], rax
    mov qword [rsp + REGS_SS], SEL_DATA
    mov qword [rsp + REGS_CS], SEL_CODE
    mov rax, VECTOR_BP << 32                ; and no error code
    mov [rsp + REGS_ORIG_AX], rax
    mov qword [rsp + REGS_AUX], 0
    mov ebx, [rsp + REGS_FLAGS]
    cld
    mov r14, [rsp + WORD_0]
    inc r14
    or r14, 31
    mov r14, [r14 - 7]
    mov rax, [r14 + SITE_ADDR]
    inc rax
    mov [rsp + REGS_IP], rax
%endmacro

; CALL_ENGINE function: (image, site, area of the CPU).
%macro CALL_ENGINE 1
    mov rdi, rsp
    mov rsi, r14
    mov rdx, [gs:PERCPU_PROBE]
    call %1
%endmacro

; RUN label, label: what kprobe_jump_handler does, as far as no hit is active on this CPU and
; enough of the stack is left; else on to the first label. Where there are more probes than
; one, or the handler has set ip, on to the second label, which comes back to .done.
; Out: eax = what the handler says
%macro RUN 2
    mov rdi, [r14 + SITE_PROBES]
    lea rax, [rel no_probe]
    test rdi, rdi
    cmovz rdi, rax
    cmp qword [CPU(PERCPU_PROBE)], 1           ; the CPU is ready for probes
    sbb rdx, rdx
    mov r9, [rdi + KPROBE_PRE]
    cmp r9, 1
    sbb r8, r8
    ADMIT NO_NMI, rdi, rdx, r8
    jnz %1
    ENTER IS_JUMPED, r12d, rax
    mov [CPU(HIT_SITE)], r14
    mov eax, [rdi + KPROBE_COUNTER]
    inc qword [r13 + rax * 8 + COUNTERS_OFF]
.call:
    mov [CPU(HIT_RUNNING)], rdi
    mov r15, rdi
    mov rsi, rsp
    call r9
    mov rdi, [r15 + KPROBE_NEXT]
    mov ecx, eax
    or rcx, rdi
    jnz %2
.done:
    HIT_END 0, HIT_RUNNING, HIT_SITE
%endmacro

; INTERRUPTS_AS_IMAGE: what plat_flags_as() does.
%macro INTERRUPTS_AS_IMAGE 0
    cld
  %ifndef HOSTED
    FLAGS_OF_CPU_TO rcx
    xor ecx, [rsp + REGS_FLAGS]
    test ecx, FLAGS_IF
    jz %%as_image
    cli
    test dword [rsp + REGS_FLAGS], FLAGS_IF
    jz %%as_image
    sti
%%as_image:
  %endif
%endmacro

; MORE: behind a handler that has said eax; rdi = the next probe. A return probe whose call is
; simple is followed here. No per-CPU counter: those count hits.
%macro MORE 0
    test eax, eax
    jnz .done
.next:
    INTERRUPTS_AS_IMAGE
    mov r9, [rdi + KPROBE_PRE]
    mov ecx, [rdi + KPROBE_FLAGS]
    and ecx, KPROBE_SLOW_FLAGS
    cmp r9, 1
    sbb eax, eax
    or ecx, eax
    jnz .rest
    lock inc qword [rdi + KPROBE_HITS]
    cmp byte [rdi + KPROBE_KIND], KIND_RETURN
    jne .call
    mov r15, rdi
    mov r11, [rsp + REGS_SP]
    IS_SIMPLE r11
    mov rsi, [r15 + KRETPROBE_HOLDER]
    or r8, [rsi + HOLDER_EXTRAS]
    or r8, [r15 + KRETPROBE_ENTRY_HANDLER]
    jnz .not_simple
    FOLLOW
    lea rdx, [rel kretprobe_trampoline]
    mov [r11], rdx
    xor eax, eax
    mov rdi, [r15 + KPROBE_NEXT]
    test rdi, rdi
    jnz .next
    jmp .done
.not_simple:
    mov rdi, r15
    mov r9, [rdi + KPROBE_PRE]
    jmp .call
.rest:
    mov rsi, rdi
    mov rdi, rsp
    mov rdx, [gs:PERCPU_PROBE]
    call kprobe_jump_rest
    movzx eax, al
    jmp .done
%endmacro

; FLAGS_OF_CPU_TO reg: and a row for the place where one more word is on the stack.
%macro FLAGS_OF_CPU_TO 1
    pushfq
%%pushed:
    pop %1
    [section .rodata_detour_pops progbits alloc noexec nowrite align=8]
    dq %%pushed
    __?SECT?__
%endmacro

; UNCHANGED words, label: on to label if the handler, as rax says, or the image wants more
; than other registers and status flags. A set DF does, and so do flags of the CPU that the
; handler has changed and left so, such as IF. All of it is looked at at once.
%macro UNCHANGED 2
    and ebx, ~FLAGS_DF
    FLAGS_OF_CPU_TO rdx
    xor edx, ebx
    and edx, FLAGS_OF_CPU
    or rax, rdx
    mov rcx, [rsp + REGS_FLAGS]
    xor rcx, rbx
    or rax, rcx
    lea rcx, [rsp + WORD_0 + 8 * %1]
    xor rcx, [rsp + REGS_SP]
    or rax, rcx
    jnz %2
%endmacro

; GO_ON: back into the cell.
%macro GO_ON 0
    LOAD EACH_REGISTER
    lea rsp, [rsp + WORD_0]
.ret:
    ret
%endmacro

; LEAVE: by the image.
%macro LEAVE 0
    frame image
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r12d
    jmp switch_if_due
%endmacro

; CODE name: a routine, and its row in the table; struct detour_code.
%macro CODE 1
proc %1, 64
    [section .rodata_detour_codes progbits alloc noexec nowrite align=8]
    dq %1, %1.pushf, %1.pushed, %1.ret, WORD_0 / 8
    __?SECT?__
%endmacro

section .text.detour progbits alloc exec nowrite align=64

; Three times the same: how many words lie above the image, and whether status flags matter.
%macro CALL 3
CODE %1
  %if %2 == 2
    frame detour_called, SITE_ADDR
  %else
    frame detour, SITE_ADDR
  %endif
    BUILD %2
    RUN .all, .more
.ran:
    mov r15d, eax
    UNCHANGED %2, .changed
    PREEMPT_ON
  %if %3
    RESTORE_FLAGS
  %endif
    GO_ON
.all:
    CALL_ENGINE kprobe_jump_handler
    movzx eax, al
    jmp .ran
.changed:
    cld
    xor ecx, ecx
    test r15d, r15d
    setnz cl
    CALL_ENGINE kprobe_jump_leave
    LEAVE
.more:
    MORE
endproc %1
nokprobe %1
%endmacro

    CALL detour_call, 1, 1

; The status flags are written before they are read again, whatever way the program goes.
    CALL detour_call_dead, 1, 0

; The program has called, and pushed its return address; a handler sees the stack as before.
    CALL detour_called, 2, 1

; Not between those that should be on one page, and look-ups in an emulator so saved.
section .text.detour.rare progbits alloc exec nowrite align=64

CODE detour_image
    frame detour, SITE_ADDR
    BUILD 1
    CALL_ENGINE kprobe_image_handler
    LEAVE
.ret:
endproc detour_image
nokprobe detour_image

CODE detour_image_called
    frame detour_called, SITE_ADDR
    BUILD 2
    CALL_ENGINE kprobe_image_handler
    LEAVE
.ret:
endproc detour_image_called
nokprobe detour_image_called

; The instruction has been run; what a post-handler changes is where the program goes on.
CODE detour_post
    frame detour_post, SITE_ADDR, SITE_LEN
    BUILD 1
    CALL_ENGINE kprobe_post_handler
    movzx eax, al
    UNCHANGED 1, .leave
    PREEMPT_ON
    RESTORE_FLAGS
    GO_ON
.leave:
    LEAVE
endproc detour_post
nokprobe detour_post

section .rodata
align 8
; A probe that is not there counts as disabled, which is not what RUN is for.
no_probe:
    times KPROBE_SIZE db 0xff

code_sections .text.detour, .text.detour.rare

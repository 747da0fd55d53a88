; detour.asm - the routines that the cells of detours call: a routine builds the register
; image, calls the handlers, and goes on as the image says.
;
; A jump at a probed instruction leads to a cell (probes/jump/detour.c). The cell calls one
; of these routines. So on entry the stack holds, from rsp upwards:
;
;   word 0     the address in the cell where the CPU goes on
;   word 1     only if the probed instruction is a direct call: the return address of
;              that call
;
; All registers and flags are the program's. The routine builds the image below these words,
; with the same contents as after a trap:
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
; A handler, or the emulation of a call, may push a word for the program. That word lands in
; word 0 or in the gap. The stack is aligned as the program's stack was.
;
; The usual way back is a `ret` into the cell, with the registers of the image. The status
; flags are loaded one by one, because `popfq` takes several times as long. This way is only
; possible if the handlers have changed nothing but general registers. If flags, ip or sp
; have changed, the CPU leaves as after a trap, by trap_exit. (A set DF counts as
; changed, because it is cleared for C code.) In that case interrupts go off before
; preemption goes on: if a thread were preempted in trap_exit, quiescence could not see that
; the thread is on its way to a cell.
;
; When a CPU is in these routines, the program is at a probed instruction. The table
; detour_codes tells from the ip alone where word 0 is on the stack.

%include "asm_offsets.inc"
%include "probe_offsets.inc"
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"
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

; BUILD words: build the image below the @words words, and switch preemption off.
; Out: rbx = the program's flags, r12 = as PREEMPT_OFF leaves it, r13 = the CPU's area,
;      r14 = the site
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

; CALL_ENGINE function: call it with the image, the site and the struct probe_cpu.
%macro CALL_ENGINE 1
    mov rdi, rsp
    mov rsi, r14
    mov rdx, [gs:PERCPU_PROBE]
    call %1
%endmacro

; RUN rare, more: do the work of kprobe_jump_handler in the common case (see admit.inc). In
; other cases jump to the label @rare. If the handler has returned a value that is not 0, or
; there is another probe, jump to the label @more; the code there comes back to .done.
; Out: eax = the return value of the handler
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
    ADMIT FOR_ENTRY, rdi, rdx, r8
    jnz %1
    ENTER IS_JUMPED, r12d
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

; INTERRUPTS_AS_IMAGE label: do the work of plat_flags_as(), and go on at @label.
%macro INTERRUPTS_AS_IMAGE 1
    cld
  %ifndef HOSTED
    FLAGS_OF_CPU_TO rcx
    xor ecx, [rsp + REGS_FLAGS]
    test ecx, FLAGS_IF
    jz %1
    cli
    test dword [rsp + REGS_FLAGS], FLAGS_IF
    jz %1
    sti
  %endif
    jmp %1
%endmacro

; MORE: after a handler that has returned eax, run the handlers of the other probes of the
; site; rdi = the next probe. If that is a return probe and the call is simple (follow.inc),
; the call is followed here, without calling C, and with the flags of the CPU as they are. The
; per-CPU counter is not changed, because it counts hits, and this is still the same hit.
%macro MORE 0
    test eax, eax
    jnz .done
.next:
    mov r9, [rdi + KPROBE_PRE]
    mov ecx, [rdi + KPROBE_FLAGS]
    and ecx, KPROBE_SLOW_FLAGS
    cmp r9, 1
    sbb eax, eax
    or ecx, eax
    jnz .rest
    lock inc qword [rdi + KPROBE_HITS]
    cmp byte [rdi + KPROBE_KIND], KIND_RETURN
    jne .handler
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
.handler:
    INTERRUPTS_AS_IMAGE .call
.rest:
    INTERRUPTS_AS_IMAGE .as_image
.as_image:
    mov rsi, rdi
    mov rdi, rsp
    mov rdx, [gs:PERCPU_PROBE]
    call kprobe_jump_rest
    movzx eax, al
    jmp .done
%endmacro

; FLAGS_OF_CPU_TO reg: copy the flags to @reg, by pushfq and pop. A table row tells that
; between the two one more word is on the stack.
%macro FLAGS_OF_CPU_TO 1
    pushfq
%%pushed:
    pop %1
    [section .rodata_detour_pops progbits alloc noexec nowrite align=8]
    dq %%pushed
    __?SECT?__
%endmacro

; UNCHANGED words, label: jump to @label unless the CPU can go on in the cell with the
; registers of the image. The jump is taken if
;   - the handler has returned a value that is not 0 (rax),
;   - sp or a flag has changed in the image, or DF is set there,
;   - the handler has changed a flag of the CPU, such as IF, and has not changed it back.
; All conditions are collected in rax, and tested by one jump.
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

; GO_ON: go back into the cell.
%macro GO_ON 0
    LOAD EACH_REGISTER
    lea rsp, [rsp + WORD_0]
.ret:
    ret
%endmacro

; LEAVE: go on as the image says, as after a trap.
%macro LEAVE 0
    frame image
    INTERRUPTS_OFF
    mov [gs:PERCPU_PREEMPT_COUNT], r12d
    jmp switch_if_due
%endmacro

; CODE name: begin a routine, and make its row in the table: struct detour_code.
%macro CODE 1
proc %1, 64
    [section .rodata_detour_codes progbits alloc noexec nowrite align=8]
    dq %1, %1.pushf, %1.pushed, %1.ret, WORD_0 / 8
    __?SECT?__
%endmacro

section .text.detour progbits alloc exec nowrite align=64

; CALL name, words, live: a routine. @words: how many words lie above the image; @live:
; whether the program may still read the status flags.
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

; For sites where the status flags are dead: on each path the program writes them before it
; reads them.
    CALL detour_call_dead, 1, 0

; For direct calls: the program has pushed its return address. A handler must see the stack
; as it was before the push.
    CALL detour_called, 2, 1

; The routines from here on are seldom used. They lie in a section of their own, so that
; those above share one page. This saves an emulator look-ups.
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

; For post-handlers: the instruction has been run. The program goes on with the image as the
; post-handler leaves it. If a switch is due, the program leaves by the image, and does not
; come back to the cell: quiesce() counts one end of a hit in a cell, that of the first call.
CODE detour_post
    frame detour_post, SITE_ADDR, SITE_LEN
    BUILD 1
    CALL_ENGINE kprobe_post_handler
    movzx eax, al
    UNCHANGED 1, .leave
    mov [gs:PERCPU_PREEMPT_COUNT], r12d
    cmp word [gs:PERCPU_DUE], 0
    jne .leave
    RESTORE_FLAGS
    GO_ON
.leave:
    LEAVE
endproc detour_post
nokprobe detour_post

section .rodata
align 8
; RUN uses this in place of a probe when the site has none. All its flags are set, as if
; it were disabled, so RUN jumps to its label @rare.
no_probe:
    times KPROBE_SIZE db 0xff

code_sections .text.detour, .text.detour.rare

; switch.asm - switches from one thread's stack to another thread's stack.
;
; It saves the flags and the registers that the C calling convention preserves. The caller
; of switch_to() has saved the other registers, or a trap frame further up contains them.
; These are cleared: a value of the thread that leaves would stay in a register for as long as
; the next thread does not write it, and could look like an address that this one will use.

%include "kernel/base/proc.inc"

extern thread_start         ; _Noreturn void thread_start(struct thread *left)

section .text

; struct thread *switch_to(struct thread *prev, uintptr_t *save_sp, uintptr_t load_sp)
; In:   rdi = the thread that leaves, rsi = where its rsp goes, rdx = rsp of the next
; Out:  in the next thread, rax = the thread that left
;
; A switched-out stack, from its saved rsp up:
;   flags, r15, r14, r13, r12, rbx, rbp, return address
proc switch_to
    push_preserved
    pushfq
    mov [rsi], rsp
    mov rsp, rdx
    frame same
    mov rax, rdi
    xor ecx, ecx
    xor edx, edx
    xor esi, esi
    xor edi, edi
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r11d, r11d
    popfq
    pop_preserved
    ret
endproc switch_to
noretprobe switch_to

; thread_entry: the first switch to a thread returns to here.
; In: rax = the thread that left. The zero frame pointer ends backtraces.
proc thread_entry
    frame end
    xor ebp, ebp
    mov rdi, rax
    call thread_start
    ud2
endproc thread_entry

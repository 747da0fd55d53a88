; context_targets.asm - functions that test_context.c and test_slots.c probe, which cannot
; be written in C.

%include "kernel/base/proc.inc"
%include "kernel/mm/extable.inc"

section .text

; unsigned long flags_around(unsigned long flags): execute the instruction at
; flags_around_nop with @flags. The flags of the caller are restored.
; Out: the flags after this instruction
proc flags_around
    pushfq
    push rdi
    popfq
global flags_around_nop
flags_around_nop:
    lea rax, [rax]
    pushfq
    pop rax
    popfq
    ret
endproc flags_around

; void fill_slowly(void *to, size_t len): fill @len bytes by the one instruction at
; fill_slowly_rep, which takes long and can be interrupted in the middle.
proc fill_slowly
    mov rcx, rsi
    mov eax, 0x5a
global fill_slowly_rep
fill_slowly_rep:
    rep stosb
    ret
endproc fill_slowly

; bool load_not_canonical(void): load from an address that is not
; canonical, which raises #GP.
; Out: true when the #GP was fixed up
proc load_not_canonical
    mov rax, 0x8000000000000000
global load_not_canonical_load
load_not_canonical_load:
    mov rax, [rax]
    xor eax, eax
    ret
.fixed:
    mov eax, 1
    ret
    extable load_not_canonical_load, .fixed
endproc load_not_canonical

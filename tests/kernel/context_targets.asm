; context_targets.asm - what test_context.c and test_slots.c probe: states and places that C
; cannot make.

%include "kernel/base/proc.inc"
%include "kernel/mm/extable.inc"

section .text

; unsigned long flags_around(unsigned long flags): with these flags, execute the instruction
; at flags_around_nop.
; Out: the flags behind it; the caller's own are restored
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

; void fill_slowly(void *to, size_t len): one instruction at fill_slowly_rep that takes long
; and can be interrupted in its midst.
proc fill_slowly
    mov rcx, rsi
    mov eax, 0x5a
global fill_slowly_rep
fill_slowly_rep:
    rep stosb
    ret
endproc fill_slowly

; bool load_not_canonical(void): a load from an address that is not canonical, which is a #GP.
; Out: true when it has been fixed up
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

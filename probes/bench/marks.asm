; marks.asm - 10,000 places of one marker, and of one static key. No CPU executes them.
; `make bench` links them, and any kernel can load them as a module.
;
;     nasm -f elf64 -I./ -o /tmp/marks.o probes/bench/marks.asm

%include "kernel/base/proc.inc"

%define PLACES 10000

section .marker_insns progbits alloc noexec nowrite align=8

section .static_keys progbits alloc noexec nowrite align=8

section .markers progbits alloc noexec write align=8
site:
    dq name, format, 0, 0, 0

section .rodata
name:
    db "bench_many", 0
format:
    db "nothing", 0
align 8
words:
    dq site

section .text

%macro marker 0
%%place:
    mov al, 0
    test al, al
    jne near cold
[section .marker_insns]
    dq %%place, site
__SECT__
%endmacro

proc bench_marks
%rep PLACES
    marker
%endrep
    ret
cold:
    mov rax, words
    call marker_enter
    ret
endproc bench_marks

extern marker_enter             ; kernel/debug/marker_enter.asm

; Each place has a jump target of its own, as a compiler makes it.
%macro key 0
%%place:
    db 0x0f, 0x1f, 0x44, 0, 0
%%back:
[section .static_keys]
    dq %%place, %%cold, bench_key
[section .text.cold exec]
%%cold:
    jmp %%back
__SECT__
%endmacro

proc bench_keys
%rep PLACES
    key
%endrep
    ret
endproc bench_keys

extern bench_key                ; probes/bench/bench_condition.c

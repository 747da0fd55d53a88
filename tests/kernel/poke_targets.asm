; poke_targets.asm - functions whose text is changed by tests while CPUs execute it.

%include "kernel/base/proc.inc"

section .text.poke_targets progbits alloc exec nowrite align=4096

; uint32_t poke_target_N(void): one instruction of five bytes, and a return. Tests
; exchange the instruction for a mov of 0x22222222. Any mixture of old and new bytes would
; be seen in the returned word.
%macro target 1
    global poke_target_%1:function (poke_target_%1.end - poke_target_%1)
poke_target_%1:
    mov eax, 0x11111111
    ret
.end:
%endmacro

; The first 64 targets begin at each offset in a cache line. The last of these has one
; byte on the first page and four on the next. Three more targets have two, three and four
; bytes in front of a page boundary.
%assign n 0
%rep 64
    times n * 65 - ($ - $$) db 0xcc
    target n
  %assign n n + 1
%endrep
%rep 3
    times 4096 * (n - 62) - (n - 62) - ($ - $$) db 0xcc
    target n
  %assign n n + 1
%endrep


; int spin_inside(const bool *leave): loop inside of the first spin_inside_len bytes until
; *leave is true.
; Out: 0
    align 64, db 0xcc
    global spin_inside:function (spin_inside.end - spin_inside)
spin_inside:
    xor eax, eax
.stay:
    pause
    cmp byte [rdi], 0
    je .stay
.behind:
    ret
.end:

global spin_inside_len
spin_inside_len equ spin_inside.behind - spin_inside

; void fill_long(void *to, size_t len): fill @len bytes. The first ten bytes are three
; instructions, with no label between them. Most of the time is spent at the third one.
    align 64, db 0xcc
    global fill_long:function (fill_long.end - fill_long)
fill_long:
    mov rcx, rsi
    mov eax, 0x5a
    rep stosb
    ret
.end:

; uint64_t wide_target(void): one instruction of eight bytes, aligned, so that one store
; can change all of it.
    align 64, db 0xcc
    global wide_target:function (wide_target.end - wide_target)
wide_target:
    db 0x48, 0x8d, 0x04, 0x25       ; lea rax, [disp32]
    dd 0x11111111
    ret
.end:

; bool flags_target(long a, long b): return a == b, if the instruction at
; flags_target_writer was replaced by a NOP. As it is, this instruction writes all status
; flags, between the comparison of a and b and the sete that reads ZF.
    align 64, db 0xcc
    global flags_target:function (flags_target.end - flags_target)
flags_target:
    cmp rdi, rsi
.probed:
    mov eax, 0
.writer:
    cmp ecx, ecx
    sete al
    ret
.end:

global flags_target_probed, flags_target_writer
flags_target_probed equ flags_target.probed
flags_target_writer equ flags_target.writer

section .rodata

; const uintptr_t poke_targets[]: the addresses of the targets, then 0.
global poke_targets:data (poke_targets.end - poke_targets)
    align 8, db 0
poke_targets:
%assign i 0
%rep n
    dq poke_target_ %+ i
  %assign i i + 1
%endrep
    dq 0
.end:

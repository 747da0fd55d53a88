; program_places.asm - the places at which program_ways.c puts programs. A fixture pushes two
; words, executes the probed instruction, and pops the words to other registers: so code that
; changes the program's stack changes these registers.
%include "kernel/base/proc.inc"

bits 64
default rel
section .text

%assign PLACES 32              ; of each kind

%macro place 2-*                ; kind, instructions: the first one is the probed one
%assign i 0
%rep PLACES
%xdefine this place_%1_%[i]
proc this
    push rsi
    push rdi
%rotate 1
%rep %0 - 1
    %1
%rotate 1
%endrep
    pop r14
    pop r15
    ret
endproc this
[section .data]
    dq this, this + 2           ; behind the pushes
__?SECT?__
%assign i i + 1
%endrep
%endmacro

proc place_callee
    lea r12, [r12 + 5]
    ret
endproc place_callee

[section .data]
align 8
global program_places
program_places:                 ; by kind and number: the function, the instruction
__?SECT?__
place live, {lea rbx, [rbx + 0x12345678]}
place dead, {lea rbx, [rbx + 0x12345678]}, {add rbx, rsi}
place call, {call place_callee}

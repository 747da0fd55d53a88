; stack.asm - fixtures that move the stack pointer without a branch, and
; string instructions.

%include "tests/conformance/fixture.inc"

%macro push_pop 1
    try push %1
    try pop %1
%endmacro

; Tried by vary_values and vary_frames.
fixtures stack
    for_each push_pop, rax, rcx, rdx, rbx, rbp, rsi, rdi
    for_each push_pop, r8, r9, r10, r11, r12, r13, r14, r15
    try push rsp
    try db 0xff, 0xf4 ; push rsp, the long way
    try db 0x8f, 0xc0 ; pop rax, the long way
    try push ax
    try push r9w
    try pop dx
    try pop r10w
    try push 5
    try push -5
    try push 0x12345678
    try push word 0x1234
    try db 0x66, 0x6a, 0xfb ; push word -5
    try push qword [rbx]
    try push word [rsi]
    try push qword [rsp + 16]
    try pop qword [rbx]
    try pop word [rsi + 2]
    try pop qword [rsp + 16]
    try pop qword [rel fixture_memory + 8]
    try push fs
    try push gs
    try enter 0, 0
    try add rsp, 32
end_fixtures

; Tried by vary_frames.
fixtures frame
    try leave
    try pop rsp
    try pop rbp
    try mov rsp, rbp
    try enter 0, 1
    try enter 0, 3
end_fixtures

; Tried by vary_reserved.
fixtures reserve
    try enter 32, 0
    try enter 16, 1
    try enter 48, 3
    try sub rsp, 64
    try and rsp, -32
    try lea rsp, [rsp - 24]
    try lea rsp, [rbp - 96]
end_fixtures

; ---- strings ---------------------------------------------------------------------------

%macro moving 1
    try %1b
    try %1w
    try %1d
    try %1q
    try rep %1b
    try rep %1w
    try rep %1d
    try rep %1q
%endmacro

%macro comparing 1
    moving %1
    try repne %1b
    try repne %1d
    try repne %1q
%endmacro

fixtures string
    for_each moving, movs, stos, lods
    for_each comparing, cmps, scas
    try db 0xf2, 0xa4 ; repne movsb
    try db 0xf3, 0x26, 0x66, 0xab ; rep stosw, es
end_fixtures

; These have a 32-bit counter and 32-bit addresses. Nothing is mapped at such addresses,
; so they fault unless the counter is 0.
fixtures string_32
    fault a32 rep stosb
    fault a32 rep movsq
    fault a32 lodsb
end_fixtures

; Tried by vary_long_strings, with strings of 4 KiB.
fixtures long_string
    try rep movsb
    try rep stosb
    try rep lodsb
    try repne scasb
    try repe cmpsb
end_fixtures

; fixture.asm - a function with an instruction of each kind that a film is about.

%include "kernel/base/proc.inc"

section .text

; uint64_t film_fixture(uint64_t x): computes a number from @x. Its meaning does not matter.
; In:   rdi = x
; Out:  rax = the number; flags, rcx, rdx are changed
global film_fixture_len
proc film_fixture
    db 0x0f, 0x1f, 0x44, 0, 0       ; +0:  nop, of five bytes
    mov eax, 0x12345                ; +5:  five bytes: as long as a jump
    add eax, edi                    ; +10: two bytes: a jump here reads the next three
    rol eax, 3                      ; +12
    xor eax, 0x55                   ; +15
    inc eax                         ; +18: short instructions, which one jump displaces
    inc ecx                         ; +20
    lea edx, [rax + rcx]            ; +22
    mov ecx, 40                     ; +25
.longer:
    dec ecx                         ; +30
    jnz .longer
    mov eax, edx
    ret
.behind:
endproc film_fixture
film_fixture_len equ film_fixture.behind - film_fixture

; targets.asm - what the stress program probes: instructions of every way to be hit, with
; results that follow from the arguments alone.
;
; All are uint64_t fn(uint64_t x, uint64_t arg). Where a target can fault, arg decides,
; and the label behind its name with _fault is the instruction. tests/stress/targets.c has
; the rows.

%include "kernel/base/proc.inc"

FLAGS_DF equ 1 << 10
FLAGS_IF equ 1 << 9
FLAGS_TF equ 1 << 8
FLAGS_AC equ 1 << 18

; NOP5: what compiled functions begin with, and what a jump replaces alone.
%macro NOP5 0
    db 0x0f, 0x1f, 0x44, 0, 0
%endmacro

section .text

; 3 * x + 2, by short instructions: the jump of each one reads those behind it
proc stress_plain
    NOP5
    push rbx
    mov eax, edi
    xchg rax, rbx
    lea rax, [rbx + rbx * 2]
    cwde
    cdqe
    pop rbx
    inc eax
    nop
    stc
    adc rax, 0
    ret
endproc stress_plain

; Flags that live across what is probed, and interrupts that are off for a while.
; 6 + x, 1 less where x < 3, 8 more where x == 3
proc stress_flags
    pushfq
    cli
    cmp rdi, 3
    mov eax, 5
    lea rdi, [rdi + 1]
    sbb rax, 0
    cmp rdi, 4
    setz cl
    popfq
    movzx ecx, cl
    add rax, rdi
    lea rax, [rax + rcx * 8]
    ret
endproc stress_flags

; sti and its shadow; only where interrupts are on. x + 9
proc stress_sti
    NOP5
    cli
    nop
    sti
    nop
    cli
    sti
    lea rax, [rdi + 9]
    ret
endproc stress_sti

; x + byte 7 of the 16 at arg
proc stress_strings
    NOP5
    sub rsp, 24
    mov rax, rdi
    mov rdi, rsp
    mov ecx, 16
global stress_strings_fault
stress_strings_fault:
    rep movsb
    movzx ecx, byte [rsp + 7]
    add rax, rcx
    add rsp, 24
    ret
endproc stress_strings

; x + the word at arg
proc stress_load
    push rbp
    mov rbp, rsp
global stress_load_fault
stress_load_fault:
    mov rax, [rsi]
    add rax, rdi
    pop rbp
    ret
endproc stress_load

; (x + 100) / arg
proc stress_divide
    NOP5
    lea rax, [rdi + 100]
    xor edx, edx
global stress_divide_fault
stress_divide_fault:
    div rsi
    ret
endproc stress_divide

; stress_load(x, arg) + stress_plain(x)
proc stress_outer
    NOP5
    push rdi
    call stress_load
    pop rdi
    push rax
    call stress_plain
    pop rcx
    add rax, rcx
    ret
endproc stress_outer

; What is emulated: r = stress_plain(x) + 3; r + 2 where that is odd
proc stress_branches
    push rbx
    lea rax, [rel stress_plain]
    call rax
    mov rbx, rax
    mov ecx, 3
.again:
    inc rbx
    loop .again
    jrcxz .counted
    ud2
.counted:
    test bl, 1
    jz .even
    add rbx, 2
.even:
    mov rax, rbx
    pop rbx
    ret
endproc stress_branches

; x, in frames as small as there are
proc stress_recurse
    test rdi, rdi
    jz .bottom
    sub rsp, 8
    dec rdi
    call stress_recurse
    add rsp, 8
    inc rax
    ret
.bottom:
    xor eax, eax
    ret
endproc stress_recurse

; stress_plain(x + 1), by a jump
proc stress_tail
    NOP5
    inc rdi
    jmp stress_plain
endproc stress_tail

; 42, when each has jumped to the other x times
proc stress_circle
    dec rdi
    js .done
    jmp stress_circle_back
.done:
    mov eax, 42
    ret
endproc stress_circle

proc stress_circle_back
    jmp stress_circle
endproc stress_circle_back

; 3 * x; a handler at its entry may send the program to the other one: 3 * x + 1
proc stress_redirect
    NOP5
    lea rax, [rdi + rdi * 2]
    ret
endproc stress_redirect

proc stress_elsewhere
    lea rax, [rdi + rdi * 2 + 1]
    ret
endproc stress_elsewhere

; 5 * x, as long as a handler at the entry of stress_image has changed just those flags
; that it has left in rdx
IMAGE_FLAGS equ FLAGS_DF | FLAGS_AC | FLAGS_IF
proc stress_image_call
    pushfq
    xor edx, edx
    call stress_image
    xor rax, [rsp]
    popfq
    and eax, IMAGE_FLAGS
    xor eax, edx
    lea rdi, [rdi + rdi * 4]
    add rax, rdi
    ret
endproc stress_image_call

proc stress_image
    NOP5
    pushfq
    pop rax
    ret
endproc stress_image

; Never called: probes there use up the cells for code of their own.
proc stress_idle
  %rep 64
    NOP5
  %endrep
    ret
endproc stress_idle

; uint64_t stress_stepped(uint64_t (*fn)(uint64_t, uint64_t), uint64_t x, uint64_t arg):
; fn(x, arg), with TF set
proc stress_stepped
    push rbp
    mov rbp, rsp
    mov rax, rdi
    mov rdi, rsi
    mov rsi, rdx
    pushfq
    or qword [rsp], FLAGS_TF
    popfq
    call rax
    pushfq
    and qword [rsp], ~FLAGS_TF
    popfq
    pop rbp
    ret
endproc stress_stepped

; void stress_set_flags(uint64_t flags): these, too, from here on
proc stress_set_flags
    pushfq
    or [rsp], rdi
    popfq
    ret
endproc stress_set_flags

; void stress_fault(unsigned kind, uint64_t flags): with these flags set, too, one of four
; faults. A fault handler that deals with it goes on at stress_fault_done.
proc stress_fault
    pushfq
    pushfq
    or [rsp], rsi
    popfq
    cmp edi, 1
    jb .page
    je .protection
    cmp edi, 3
    jb .divide
    ud2
.divide:
    xor ecx, ecx
    xor edx, edx
    mov eax, 1
    div ecx
.protection:
    mov rax, 1 << 63
    mov rax, [rax]
.page:
    mov eax, 16
    mov rax, [rax]
global stress_fault_done
stress_fault_done:
    popfq
    ret
endproc stress_fault

; targets.asm - the functions that the stress program probes. They have instructions for
; every way to run a hit, and their results depend on the arguments only.
;
; All are uint64_t fn(uint64_t x, uint64_t arg). If a target can fault, arg decides
; whether it does, and the label NAME_fault is at the instruction that faults. The comment
; of a function is what it returns. tests/stress/targets.c has a row for each target.

%include "kernel/base/proc.inc"

FLAGS_DF equ 1 << 10
FLAGS_IF equ 1 << 9
FLAGS_TF equ 1 << 8
FLAGS_AC equ 1 << 18

; NOP5: the NOP of five bytes with which compiled functions begin. A jump there replaces
; no other instruction.
%macro NOP5 0
    db 0x0f, 0x1f, 0x44, 0, 0
%endmacro

section .text

; 3 * x + 2. A jump at any of these short instructions reads bytes of the next ones.
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

; 6 + x, but 1 less if x < 3, and 8 more if x == 3. Probed instructions lie between
; writers and readers of flags, and interrupts are off for a while.
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

; x + 9. It has a sti with its interrupt shadow, so it may only be called
; with interrupts on.
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

; x + byte 7 of the 16 bytes at arg
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

; r = stress_plain(x) + 3, plus 2 if r is odd. It has instructions that are emulated.
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

; x, by x nested calls with frames of 16 bytes, the smallest possible
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

; 42. Before that, the two functions have jumped to each other x times.
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

; 3 * x. A handler at its entry may send the program to stress_elsewhere: 3 * x + 1.
proc stress_redirect
    NOP5
    lea rax, [rdi + rdi * 2]
    ret
endproc stress_redirect

proc stress_elsewhere
    lea rax, [rdi + rdi * 2 + 1]
    ret
endproc stress_elsewhere

; 5 * x, if handlers at the entry of stress_image have changed exactly the flags that they
; have also changed in rdx
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

; This function is never called. Probes on it use up the cells for specialized detours.
proc stress_idle
  %rep 64
    NOP5
  %endrep
    ret
endproc stress_idle

; uint64_t stress_stepped(uint64_t (*fn)(uint64_t, uint64_t), uint64_t x, uint64_t arg):
; return fn(x, arg), called with TF set
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

; void stress_set_flags(uint64_t flags): set @flags in addition to those that are set
proc stress_set_flags
    pushfq
    or [rsp], rdi
    popfq
    ret
endproc stress_set_flags

; void stress_fault(unsigned kind, uint64_t flags): set @flags in addition to those that
; are set, and cause one of four faults. A fault handler that deals with it lets the
; program go on at stress_fault_done.
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

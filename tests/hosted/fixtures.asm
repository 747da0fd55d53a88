; fixtures.asm - small functions. Together they use every kind of instruction that can
; carry a probe in a process. The tests run each of them without and with probes; see
; fixture.h.
;
; In:   rdi = 1024 bytes of memory, aligned to 64; accesses behind it fault. DF is 0, rsp
; is the
;       stack, and all other registers are random
; Out:  all registers and the memory are the result; only rsp must be kept
%include "kernel/base/proc.inc"
%include "kernel/mm/extable.inc"

bits 64
default rel

extern fixture_data         ; 64 quadwords

section .text

; ---- moving, computing -----------------------------------------------------------------

proc fx_mov
    mov rax, rbx
    mov eax, ecx
    mov al, ch
    mov r8w, dx
    mov byte [rdi + 3], 0x7f
    mov dword [rdi + 8], 0x12345678
    mov qword [rdi + 16], -5
    mov r9, [rdi + 8]
    movzx r10d, byte [rdi + 9]
    movsx r11, word [rdi + 10]
    movsxd r12, dword [rdi + 16]
    mov r13, 0x1122334455667788
    xchg r13, r14
    xchg [rdi + 24], rax
    bswap rdx
    lea r15, [rdi + rcx * 4 - 77]
    lea ebx, [eax + edx * 2 + 1]
    ret
endproc fx_mov

proc fx_alu
    add rax, rbx
    adc rcx, rdx
    sub r8d, 0x1234
    sbb r9b, 5
    and r10, -16
    or r11w, ax
    xor r12, [rdi + 40]
    cmp r13, r14
    test r15b, 0x40
    inc byte [rdi]
    dec qword [rdi + 8]
    neg rbx
    not rcx
    adc [rdi + 32], rdx
    xadd rax, rbx
    cmc
    stc
    clc
    lahf
    sahf
    cbw
    cwde
    cdqe
    cwd
    cdq
    cqo
    ret
endproc fx_alu

proc fx_muldiv
    mul rbx
    imul rcx, r8
    imul r9, r10, 1000
    mov edx, 0
    or ebx, 1
    div rbx
    mov ax, -700
    mov bl, 7
    idiv bl
    cmp rcx, r9                 ; sets the flags that div leaves undefined
    ret
endproc fx_muldiv

proc fx_shift
    shl rax, 5
    shr ebx, cl
    sar rdx, 1
    rol r8, cl
    ror r9w, 3
    rcl r10, 1
    rcr r11, cl
    shld r12, r13, 7
    shrd r14, r15, cl
    ret
endproc fx_shift

proc fx_bit
    and ebx, 63
    bt rax, rbx
    bts rax, 3
    btr [rdi], rbx
    btc r8, 60
    bsf r9, r10
    bsr r11, rax
    popcnt r12, r13
    ret
endproc fx_bit

proc fx_bmi
    mulx r11, r12, r13
    shlx rax, rbx, rcx
    rorx rdx, r8, 13
    lzcnt r14, rax
    tzcnt r15, rbx
    andn rdx, rax, rcx
    ret
endproc fx_bmi

proc fx_setcc_cmov
    cmp rax, rbx
    seto byte [rdi]
    setb byte [rdi + 1]
    setz cl
    setbe dl
    sets byte [rdi + 2]
    setp byte [rdi + 3]
    setl byte [rdi + 4]
    setle byte [rdi + 5]
    cmovo r8, rax
    cmovae r9, rax
    cmovnz r10, rax
    cmova r11, rax
    cmovns r12d, eax
    cmovnp r13, rax
    cmovge r14, rax
    cmovg r15, [rdi + 8]
    ret
endproc fx_setcc_cmov

proc fx_atomic
    lock add qword [rdi], 7
    lock inc dword [rdi + 8]
    lock xadd [rdi + 16], rax
    mov rax, [rdi + 24]
    lock cmpxchg [rdi + 24], rbx
    lock cmpxchg [rdi + 32], rcx
    lock cmpxchg16b [rdi + 48]
    lock bts qword [rdi], 9
    test rax, rax
    mfence
    lfence
    sfence
    pause
    prefetcht0 [rdi]
    ret
endproc fx_atomic

; ---- the stack -------------------------------------------------------------------------

proc fx_push_pop
    push rax
    push r15
    push qword [rdi + 8]
    push 0x12
    push 0x12345678
    push -1
    push rsp
    push qword [rsp]
    push qword [rsp + 8]
    push bx
    pop cx
    pop rdx
    pop qword [rdi + 16]
    pop qword [rsp + 16]
    pop r8
    pop r9
    pop r10
    pop r11
    pop r12
    pop rbx
    push rsp
    pop rsp
    push fs
    pop rax
    ret
endproc fx_push_pop

proc fx_frame
    push rbp
    mov rbp, rsp
    sub rsp, 64
    mov [rbp - 8], rax
    mov [rsp], rbx
    enter 16, 0
    mov [rbp - 8], rcx
    leave
    and rsp, -32
    lea rdx, [rsp + 8]
    leave
    ret
endproc fx_frame

; The results leave TF out: a program that steps itself sees its own TF.
proc fx_flags
    pushfq
    pop rax
    stc
    pushfq
    pop rbx
    add al, 0x7f
    pushfq
    popfq
    setc cl
    push 0xcd5                  ; every status flag, and DF
    popfq
    pushfq
    pop rdx
    pushfq
    and word [rsp], 0x100       ; TF stays as it is
    or word [rsp], 0x801        ; CF and OF
    popfq
    pushf
    pop r8w
    push r8w
    popf
    seto ch
    std
    cld
    ret
endproc fx_flags

; ---- branches --------------------------------------------------------------------------

%macro both_forms 1             ; condition, by number
    db 0x70 + %1, %%short - $ - 2
    lea r8, [r8 + (1 << %1)]
%%short:
    db 0x0f, 0x80 + %1
    dd %%near - $ - 4
    lea r9, [r9 + (1 << %1)]
%%near:
%endmacro

; All 16 conditions, as short and as near jumps, with the status flags from rax.
proc fx_jcc
    xor r8d, r8d
    xor r9d, r9d
    and eax, 0x8d5
    pushfq
    and qword [rsp], 0x100      ; a program that steps itself keeps its TF
    or [rsp], rax
    popfq
%assign cc 0
%rep 16
    both_forms cc
%assign cc cc + 1
%endrep
    ret
endproc fx_jcc

proc fx_loop
    and ecx, 7
    mov eax, ecx
    xor edx, edx
    inc ecx
.plain:
    inc edx
    loop .plain
    mov ecx, eax
    inc ecx
.equal:
    inc edx
    cmp edx, 5
    loope .equal
    mov rcx, 0xabcd00000003
.narrow:
    inc edx
    loop .narrow, ecx
    mov ecx, eax
    inc ecx
.not_equal:
    inc edx
    cmp edx, 9
    loopne .not_equal
    ret
endproc fx_loop

proc fx_jrcxz
    and ecx, 1
    jrcxz .zero
    inc rax
.zero:
    mov rcx, 0x100000000
    jrcxz .never
    jecxz .narrow
.never:
    add rax, 1000
.narrow:
    xor ecx, ecx
    jrcxz .yes
    add rax, 100000
.yes:
    ret
endproc fx_jrcxz

proc fx_jmp
    jmp short .near
.back:
    mov eax, 2
    jmp strict near .out
.near:
    jmp .back
.out:
    lea rbx, [.reg]
    jmp rbx
    ud2
.reg:
    lea r12, [.mem]
    mov [rdi + 8], r12
    jmp [rdi + 8]
    ud2
.mem:
    lea r13, [.stack]
    push r13
    jmp [rsp]
    ud2
.stack:
    pop r14
    and eax, 3
    lea r8, [fixture_table]
    jmp [r8 + rax * 8]
    ud2
.zero:
    inc rcx
.one:
    inc rcx
.two:
    inc rcx
.three:
    ret
endproc fx_jmp

; ---- calls -----------------------------------------------------------------------------

proc leaf
    mov r11, [rsp]              ; the return address is a result
    add rax, r11
    rol rax, 3
    ret
endproc leaf

proc leaf_pops
    mov r11, [rsp + 8]
    xor rax, r11
    ret 16
endproc leaf_pops

proc fx_call
    call leaf
    lea rbx, [leaf]
    call rbx
    mov r8, rbx
    call r8
    mov r12, rbx
    call r12
    mov r15, rbx
    call r15
    mov rbp, rbx
    call rbp
    mov [rdi + 16], rbx
    call [rdi + 16]
    call [fixture_leaf]
    lea r13, [rdi + 32]
    mov edx, -2
    movsxd rdx, edx
    call [r13 + rdx * 8]
    push rbx
    push 5
    call [rsp + 8]
    pop rcx
    pop rcx
    push rax
    push rcx
    call leaf_pops
    push rbx
    call [rsp]
    pop rdx
    call [abs fixture_leaf]
    ret
endproc fx_call

proc fx_call_stack
    lea rax, [leaf]
    push rax
    push rax
    mov rbx, rsp
    call [rsp + 8]
    call [rsp]
    call [rbx]
    pop rcx
    pop rcx
    ret
endproc fx_call_stack

; Return addresses used as data, and returns without a call.
proc fx_ret
    call .next
.next:
    pop rax
    lea rbx, [.there]
    push rbx
    ret
    ud2
.there:
    push 1
    push 2
    lea rbx, [.further]
    push rbx
    ret 16
    ud2
.further:
    lea rbx, [.last]
    push rbx
    db 0xf3                     ; rep
    ret
    ud2
.last:
    ret
endproc fx_ret

proc descend
    push rcx
    dec ecx
    jz .bottom
    call descend
.bottom:
    pop rdx
    lea rax, [rax + rdx]
    ret
endproc descend

proc fx_recursion
    and ecx, 15
    inc ecx
    call descend
    ret
endproc fx_recursion

proc fx_tail_call
    add rax, 1
    jmp leaf
endproc fx_tail_call

; ---- strings ---------------------------------------------------------------------------

proc fx_string
    mov rbx, rdi
    lea rsi, [rdi + 512]
    movsb
    movsw
    movsd
    movsq
    stosq
    lodsd
    scasb
    cmpsb
    mov ecx, 40
    lea rsi, [rbx + 512]
    rep movsb
    mov ecx, 5
    rep stosq
    mov rdi, rbx
    lea rsi, [rbx + 512]
    mov ecx, 64
    repe cmpsb
    mov ecx, 64
    repne scasb
    xor ecx, ecx
    rep movsq
    lea rdi, [rbx + 200]
    lea rsi, [rbx + 300]
    std
    mov ecx, 10
    rep movsw
    lodsb
    cld
    mov edi, ebx
    xor ecx, ecx
    rep stosb
    ret
endproc fx_string

; ---- operands relative to rip, and other ways to name memory ---------------------------

proc fx_rip
    mov rax, [fixture_data]
    lea rbx, [fixture_data + 8]
    add rcx, [fixture_data + 16]
    cmp byte [fixture_data + 3], 0x12
    cmp dword [fixture_data + 8], 0x12345678
    imul r8, [fixture_data + 24], 0x1000001
    test word [fixture_data + 2], 0x1234
    movzx r9d, byte [fixture_data + 9]
    bt dword [fixture_data], 7
    push qword [fixture_data + 32]
    pop r10
    movups xmm0, [fixture_data + 40]
    movups [rdi], xmm0
    lea r11, [$]
    ret
endproc fx_rip

proc fx_address
    mov rbx, rdi
    and ecx, 7
    mov rax, [rbx + rcx * 8]
    mov rdx, [rbx + rcx]
    mov r8, [rcx * 8 + rbx + 0x40]
    mov r13, rbx
    mov r9, [r13]
    mov r12, rbx
    mov r10, [r12]
    mov r11, [r12 + rcx * 2 + 0x11]
    lea r14, [r13d + ecx]
    lea r15d, [r12 + 1]
    mov rax, [abs fs:0]
    xor eax, eax
    mov ax, fs
    ret
endproc fx_address

; ---- prefixes and long instructions ----------------------------------------------------

proc fx_prefixes
    db 0x2e, 0x3e, 0x26, 0x36
    mov eax, ebx                ; segment prefixes that mean nothing
    db 0x66, 0x66, 0x66
    nop
    db 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e
    add eax, byte 1             ; 15 bytes
    db 0x40
    mov ecx, edx
    db 0x48, 0x4c               ; only the last REX counts
    mov r8d, eax
    db 0xf2
    ret
endproc fx_prefixes

proc fx_nops
%assign i 0
%rep 3
    nop
    db 0x66, 0x90
    db 0x0f, 0x1f, 0x00
    db 0x0f, 0x1f, 0x40, 0x00
    db 0x0f, 0x1f, 0x44, 0x00, 0x00
    db 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00
    db 0x0f, 0x1f, 0x80, 0, 0, 0, 0
    db 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    db 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    db 0xf3, 0x0f, 0x1e, 0xfa   ; endbr64
%assign i i + 1
%endrep
    ret
endproc fx_nops

; ---- vectors and the x87 ---------------------------------------------------------------

proc fx_sse
    movq xmm0, rax
    movq xmm1, rbx
    punpcklqdq xmm0, xmm1
    pshufd xmm2, xmm0, 0x1b
    paddd xmm2, [rdi]
    movdqu [rdi + 16], xmm2
    cvtsi2sd xmm3, ecx
    mulsd xmm3, xmm3
    cvttsd2si rdx, xmm3
    ucomisd xmm3, xmm0
    pxor xmm4, xmm4
    pcmpeqb xmm4, xmm2
    pmovmskb r8d, xmm4
    crc32 r9d, r10b
    ldmxcsr [fixture_mxcsr]
    stmxcsr [rdi + 32]
    ret
endproc fx_sse

proc fx_avx
    vmovq xmm0, rax
    vpbroadcastq ymm1, xmm0
    vpaddd ymm2, ymm1, [rdi]
    vmovdqu [rdi + 32], ymm2
    vpermq ymm3, ymm2, 0x1b
    vextracti128 [rdi + 64], ymm3, 1
    vpmovmskb ecx, ymm3
    vptest ymm2, ymm3
    vzeroupper
    ret
endproc fx_avx

proc fx_x87
    fninit
    fld1
    fldpi
    faddp
    fst qword [rdi]
    fild qword [rdi + 8]
    fmulp
    fstp tword [rdi + 16]
    fnstsw ax
    fnstcw [rdi + 32]
    ret
endproc fx_x87

; ---- the machine -----------------------------------------------------------------------

proc fx_machine
    xor eax, eax
    xor ecx, ecx
    cpuid
    xor ecx, ecx
    xgetbv
    ret
endproc fx_machine

; ---- faults with a fix-up --------------------------------------------------------------

proc fx_bad_load
    xor ebx, ebx
.load:
    mov rax, [rbx + 8]
    ud2
.fixed:
    mov eax, 14
    ret
    extable .load, .fixed
endproc fx_bad_load

proc fx_bad_push
    xor ebx, ebx
.push:
    push qword [rbx]
    ud2
.fixed:
    mov ecx, 15
    ret
    extable .push, .fixed
endproc fx_bad_push

proc fx_bad_call
    xor ebx, ebx
.call:
    call [rbx + 16]
    ud2
.fixed:
    mov edx, 16
    ret
    extable .call, .fixed
endproc fx_bad_call

proc fx_divide_by_zero
    xor ecx, ecx
    mov edx, 0
.divide:
    div rcx
    ud2
.fixed:
    mov esi, 17
    test esi, esi
    ret
    extable .divide, .fixed
endproc fx_divide_by_zero

; The copy faults when half of it is done. This half stays.
proc fx_bad_copy
    lea rsi, [rdi + 1020]
    mov ecx, 8
.copy:
    rep movsb
    ud2
.fixed:
    mov r8d, ecx
    ret
    extable .copy, .fixed
endproc fx_bad_copy

section .data
align 8
global fixture_leaf
fixture_leaf:
    dq leaf
fixture_mxcsr:
    dd 0x1f80
align 8
fixture_table:
    dq fx_jmp.zero, fx_jmp.one, fx_jmp.two, fx_jmp.three

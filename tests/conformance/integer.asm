; integer.asm - fixtures that compute. Most are tried by vary_values, with values in
; rax rcx rdx r8..r11 and addresses in fixture_memory in the other registers.

%include "tests/conformance/fixture.inc"

; ---- moving ----------------------------------------------------------------------------

fixtures mov
    try mov al, dh
    try mov cx, ax
    try mov r8d, edx
    try mov rsi, r9
    try mov rsp, rsp
    try mov [rbx], al
    try mov [rbx + 6], cx
    try mov [r12 + 12], r10d
    try mov [r13], rdx
    try mov ah, [rsi]
    try mov dx, [rdi]
    try mov eax, [r14]
    try mov r11, [r15]
    try mov al, 0x7f
    try mov r9b, 0x80
    try mov cx, 0x1234
    try mov edx, 0x89abcdef
    try mov rax, 0x1122334455667788
    try mov rax, -5
    try mov byte [rbx], 1
    try mov word [rbx], 0x1234
    try mov dword [rbx], 0x12345678
    try mov qword [rbx], -2
    try mov al, [qword fixture_memory + 5]
    try mov rax, [qword fixture_memory + 16]
    try mov [qword fixture_memory + 9], al
    try mov [qword fixture_memory + 32], eax
    try movzx eax, cl
    try movzx r8, dx
    try movzx ecx, byte [rbx]
    try movzx rdx, word [rsi]
    try movsx ax, dl
    try movsx r9, byte [rdi]
    try movsx ecx, word [r12]
    try movsxd rdx, eax
    try movsxd r10, dword [r13]
    try movnti [rbx], rax
    fault movbe ecx, [rbx]
    fault movbe [rsi], rax
    fault movbe [rdi], dx
    try mov eax, ds
    try mov [rbx], es
    try mov rcx, ss
    try bswap eax
    try bswap r9
    try cbw
    try cwde
    try cdqe
    try cwd
    try cdq
    try cqo
    try xlatb
    try lea rax, [rcx + rdx]
    try lea r8d, [rcx + rdx * 8 - 4]
    try lea cx, [rax + 1]
    try lea rsp, [rsp + 24]
    try lea rdx, [rel fixture_memory]
    try lea rax, [fixture_memory]
    try lea rax, [ecx + edx * 4 + 0x12345]
    try a32 lea rcx, [rel fixture_memory + 77]
end_fixtures

; ---- arithmetic and logic --------------------------------------------------------------

%macro alu 1
    try %1 al, cl
    try %1 dh, ch
    try %1 ax, dx
    try %1 eax, r8d
    try %1 r9, rdx
    try %1 rcx, rcx
    try %1 [rbx], cl
    try %1 [rbx + 8], dx
    try %1 [r12 + 4], eax
    try %1 [rsp + 16], r10
    try %1 al, [rsi]
    try %1 cx, [rsi + 1]
    try %1 r11d, [rbp + 4]
    try %1 rcx, [rdi]
    try %1 al, 0x5a
    try %1 ax, 0x1234
    try %1 eax, 0x12345678
    try %1 rax, -0x1234567
    try %1 dl, 0x80
    try %1 rcx, -2
    try %1 word [r13], 0x1234
    try %1 dword [r14], 3
    try %1 byte [rel fixture_memory + 3], 0x77
    try %1 qword [rel fixture_memory + 40], 0x11223344
%endmacro

%macro alu_one 1
    try %1 cl
    try %1 ah
    try %1 ax
    try %1 r8d
    try %1 rdx
    try %1 byte [rbx]
    try %1 word [rsi + 2]
    try %1 dword [rel fixture_memory + 8]
    try %1 qword [rsp + 8]
%endmacro

fixtures alu
    for_each alu, add, or, adc, sbb, and, sub, xor, cmp
    for_each alu_one, inc, dec, neg, not
    try test al, dl
    try test cx, ax
    try test r8d, r9d
    try test [rbx], rcx
    try test al, 0x80
    try test eax, 0x80000001
    try test byte [rel fixture_memory + 7], 3
    try test qword [rsi], -1
    fault adcx r8, rax
    fault adcx rcx, [rbx]
    fault adox rdx, r9
    fault adox rax, [rsi]
    try crc32 eax, cl
    try crc32 r8, qword [rbx]
    try crc32 edx, word [rsi]
end_fixtures

; ---- shifts ----------------------------------------------------------------------------

%macro shift 1
    try %1 al, 1
    try %1 ch, 1
    try %1 dx, 1
    try %1 r8d, 1
    try %1 rax, 1
    try %1 byte [rbx], 1
    try %1 al, 0
    try %1 cx, 17
    try %1 edx, 31
    try %1 r9, 63
    try %1 qword [rsi], 33
    try %1 dword [rel fixture_memory + 20], 7
    try %1 ah, cl
    try %1 dx, cl
    try %1 eax, cl
    try %1 r10, cl
    try %1 word [rdi], cl
    try %1 qword [r12], cl
%endmacro

%macro shift_double 1
    try %1 ax, dx, 3
    try %1 eax, r8d, 0
    try %1 r9, rdx, 41
    try %1 [rbx], rax, 9
    try %1 eax, edx, cl
    try %1 [rsi], r8, cl
%endmacro

fixtures shift
    for_each shift, rol, ror, rcl, rcr, shl, shr, sar
    try db 0xc1, 0xf1, 5 ; sal ecx, 5
    for_each shift_double, shld, shrd
    fault rorx rax, rcx, 13
    fault rorx r8d, [rbx], 5
    fault sarx rax, rdx, rcx
    fault shlx r9d, [rsi], eax
    fault shrx rax, [rbx], rdx
end_fixtures

; ---- multiplying and dividing ----------------------------------------------------------

%macro multiply 1
    try %1 cl
    try %1 ax
    try %1 r8d
    try %1 rdx
    try %1 byte [rbx]
    try %1 qword [rel fixture_memory + 24]
%endmacro

; If the quotient does not fit, #DE is raised, and the program goes on at the fix-up.
%macro divide 1
    fault %1 cl
    fault %1 ah
    fault %1 r9w
    fault %1 ecx
    fault %1 r10
    fault %1 byte [rbx]
    fault %1 qword [rsi]
%endmacro

fixtures muldiv
    for_each multiply, mul, imul
    for_each divide, div, idiv
    try imul cx, ax
    try imul rdx, r8
    try imul eax, [rbx]
    try imul eax, ecx, 100
    try imul rax, [rel fixture_memory + 8], -77777
    try imul dx, [rsi], -3
    fault mulx rax, rcx, r8
    fault mulx r9d, eax, [rbx]
end_fixtures

; ---- bits ------------------------------------------------------------------------------

%macro bit_test 1
    try %1 ax, cx
    try %1 eax, edx
    try %1 r8, r9
    try %1 ecx, 37
    try %1 word [rbx], 5
    try %1 qword [rel fixture_memory + 16], 44
%endmacro

%macro bit_scan 1
    fault %1 ax, cx
    fault %1 edx, r8d
    fault %1 r9, rax
    fault %1 ecx, [rbx]
%endmacro

%macro bit_vex 1
    fault %1 eax, ecx
    fault %1 r8, [rbx]
%endmacro

%macro bit_vex3 1
    fault %1 eax, ecx, edx
    fault %1 r8, rax, rcx
%endmacro

fixtures bit
    for_each bit_test, bt, bts, btr, btc
    for_each bit_scan, bsf, bsr, tzcnt, lzcnt, popcnt
    for_each bit_vex, blsi, blsmsk, blsr
    for_each bit_vex3, andn, bextr, bzhi, pdep, pext
end_fixtures

; Tried by vary_indices: the value in the register says how far from the
; address the bit is.
%macro bit_string 1
    try %1 [rbx], cx
    try %1 [r12], eax
    try %1 [rsi + 8], r9
%endmacro

fixtures bit_string
    for_each bit_string, bt, bts, btr, btc
    try lock bts [rbx], rcx
end_fixtures

; ---- atomic operations -----------------------------------------------------------------

%macro locked 1
    try lock %1 [rbx], cl
    try lock %1 [rsi], dx
    try lock %1 dword [rel fixture_memory + 12], 5
    try lock %1 [r12], r9
%endmacro

%macro locked_one 1
    try lock %1 byte [rbx]
    try lock %1 dword [rsi + 4]
    try lock %1 qword [rel fixture_memory + 48]
%endmacro

%macro locked_bit 1
    try lock %1 dword [rbx], 3
    try lock %1 qword [rel fixture_memory + 8], 60
%endmacro

fixtures atomic
    for_each locked, add, or, adc, sbb, and, sub, xor
    for_each locked_one, inc, dec, neg, not
    for_each locked_bit, bts, btr, btc
    try xchg rax, rcx
    try xchg eax, eax
    try xchg r8, rax
    try xchg dl, ch
    try xchg [rbx], rax
    try xchg [rsi], cl
    try xchg rsp, rsp
    try xadd cl, dl
    try xadd r8, rax
    try xadd [rbx], ecx
    try lock xadd [rsi], r9
    try cmpxchg dl, cl
    try cmpxchg r8, rcx
    try cmpxchg [rbx], edx
    try lock cmpxchg [rel fixture_memory + 8], rdx
    try cmpxchg8b [rbp]
    try lock cmpxchg8b [rel fixture_memory + 24]
    fault cmpxchg16b [r12]
    fault lock cmpxchg16b [r14]
end_fixtures

; Tried by vary_equal, so that the values are equal and the exchange is done.
fixtures exchanged
    try cmpxchg [rbx], edx
    try lock cmpxchg [rsi], rcx
    try lock cmpxchg8b [r12]
    fault lock cmpxchg16b [r12]
end_fixtures

; ---- flags -----------------------------------------------------------------------------

fixtures flags
    try clc
    try stc
    try cmc
    try cld
    try std
    try lahf
    try sahf
    fault clac
    fault stac
end_fixtures

%macro set 1
    try set%1 al
    try set%1 r9b
    try set%1 [rbx]
%endmacro

%macro move_if 1
    try cmov%1 ax, cx
    try cmov%1 r8d, edx
    try cmov%1 rcx, [rbx]
%endmacro

fixtures condition
    for_each_condition set
    for_each_condition move_if
end_fixtures

; ---- instructions without an effect ----------------------------------------------------

fixtures nop
    try nop
    try db 0x66, 0x90
    try db 0x0f, 0x1f, 0x00
    try db 0x0f, 0x1f, 0x40, 0x00
    try db 0x0f, 0x1f, 0x44, 0x00, 0x00
    try db 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00
    try db 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00
    try db 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
    try db 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
    try db 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    try db 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    try db 0xf3, 0x0f, 0x1e, 0xfa ; endbr64
    try db 0xf3, 0x0f, 0x1e, 0xfb ; endbr32
    try pause
    try prefetcht0 [rbx]
    try prefetchnta [rax]
    try db 0x0f, 0x0d, 0x09 ; prefetchw [rcx]
    try lfence
    try mfence
    try sfence
    try clflush [rbx]
    fault db 0x66, 0x0f, 0xae, 0x3b ; clflushopt [rbx]
end_fixtures

; ---- prefixes in any number and order --------------------------------------------------

fixtures prefix
    try db 0x2e, 0x48, 0x01, 0xc8 ; cs add rax, rcx
    try db 0x3e, 0x8b, 0x03 ; ds mov eax, [rbx]
    try db 0x26, 0x36, 0x8b, 0x03 ; es ss mov eax, [rbx]
    try db 0x64, 0x8b, 0x03 ; fs mov eax, [rbx]: its base is 0
    try db 0x66, 0x66, 0x01, 0xc8 ; add ax, cx
    try db 0x66, 0x48, 0x01, 0xc8 ; add rax, rcx
    try db 0xf3, 0x01, 0xc8 ; rep add eax, ecx
    try db 0xf2, 0x66, 0x2e, 0x67, 0x01, 0xc8
    try db 0x67, 0x48, 0x01, 0xc8 ; add rax, rcx
    try db 0x67, 0x8d, 0x04, 0x0a ; lea eax, [edx + ecx]
    try db 0xf2, 0xf0, 0x48, 0x01, 0x0b ; xacquire lock add [rbx], rcx
    try db 0x40, 0x88, 0xe6 ; mov sil, spl
    try db 0x4f, 0x8d, 0x44, 0xff, 0x01 ; lea r8, [r15 + r15 * 8 + 1]
    try db 0x66, 0x2e, 0x3e, 0x26, 0x36, 0x66, 0x2e, 0x81, 0x83, 0, 1, 0, 0, 0x34, 0x12
    try db 0x2e, 0x64, 0x67, 0x66, 0x81, 0xc1, 0x34, 0x12 ; add cx, 0x1234
end_fixtures

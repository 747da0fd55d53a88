; address.asm - fixtures that access memory by every addressing mode. Most have a fix-up,
; because they are also tried with addresses that fault.

%include "tests/conformance/fixture.inc"

; Tried by vary_places, where each register is an address.
%macro base 1
    fault mov r8d, [%1]
    fault mov [%1 + 8], cl
    fault add rdx, [%1 - 0x80]
    fault xor dword [%1 + 0x100], 0x12345678
%endmacro

%macro base_32 1
    fault mov ecx, [%1 + 4]
%endmacro

fixtures base
    for_each base, rax, rcx, rdx, rbx, rbp, rsi, rdi
    for_each base, r8, r9, r10, r11, r12, r13, r14, r15
    for_each base_32, eax, ebp, r12d, r13d
    fault mov r8d, [rsp]
    fault mov [rsp + 8], rcx
    fault add rdx, [rsp + 0x80]
    fault xor dword [rsp + 24], 0x12345678
    fault mov rcx, [dword fixture_memory + 16]
    fault mov [dword fixture_memory + 17], dx
end_fixtures

; Tried by vary_indices, with small values in rax rcx rdx r8..r11.
%macro index 1
    fault mov rax, [rbx + %1]
    fault mov [rsi + %1 * 2], cl
    fault add edx, [rbp + %1 * 4 + 8]
    fault sub word [r12 + %1 * 8 + 0x80], 0x1234
    fault mov r8, [r13 + %1 * 8 + 0x100]
    fault mov r9d, [%1 * 8 + fixture_memory + 512]
    fault inc qword [rsp + %1 * 2 + 32]
%endmacro

fixtures index
    for_each index, rax, rcx, rdx, r8, r9, r10, r11
end_fixtures

; Tried by vary_values, since lea accesses no memory. r12 can be an index, rsp cannot.
%macro lea_index 1
    try lea rax, [rcx + %1]
    try lea r8, [%1 + %1 * 2]
    try lea edx, [r13 + %1 * 4 - 1]
    try lea r9, [rsp + %1 * 8 + 0x1000]
    try lea rcx, [%1 * 4]
%endmacro

fixtures lea
    for_each lea_index, rax, rcx, rdx, rbx, rbp, rsi, rdi
    for_each lea_index, r8, r9, r10, r11, r12, r13, r14, r15
end_fixtures

; In some of these instructions an immediate is behind the displacement.
fixtures rip
    try mov eax, [rel fixture_memory + 4]
    try mov [rel fixture_memory + 1], dl
    try mov byte [rel fixture_memory], 0x12
    try mov word [rel fixture_memory + 2], 0x3456
    try mov dword [rel fixture_memory + 4], 0x789abcde
    try mov qword [rel fixture_memory + 8], -3
    try cmp byte [rel fixture_memory + 100], 1
    try cmp qword [rel fixture_memory + 104], 0x11111111
    try add word [rel fixture_memory + 10], 0x1111
    try test dword [rel fixture_memory + 24], 0x80008000
    try imul eax, [rel fixture_memory + 12], 7
    try imul rcx, [rel fixture_memory + 16], 0x70000000
    try shl dword [rel fixture_memory + 16], 9
    try shld [rel fixture_memory + 32], rdx, 5
    try bt dword [rel fixture_memory + 20], 3
    try inc qword [rel fixture_memory + 24]
    try push qword [rel fixture_memory + 32]
    try pop qword [rel fixture_memory + 40]
    try movzx ecx, word [rel fixture_memory + 6]
    try cmpxchg [rel fixture_memory + 48], rcx
    try lock xadd [rel fixture_memory + 56], edx
    try cmovc rax, [rel fixture_memory + 64]
    try setc [rel fixture_memory + 72]
    try xchg [rel fixture_memory + 80], r8
    try lea r11, [rel fixture_memory + 0x300]
    try lea rax, [rel $]
    try prefetcht0 [rel fixture_memory]
    try nop dword [rel fixture_memory]
    fault a32 mov eax, [rel fixture_memory]
    fault a32 mov dword [rel fixture_memory + 4], 5
end_fixtures

; Tried by vary_gs: r8 is relative to the base of GS.
fixtures gs
    try mov rax, [gs:r8]
    try add dword [gs:r8 + 8], 3
    try mov [gs:r8 + 16], cl
    try inc qword [gs:r8 + 24]
    try call [gs:r8 + 40]
    try jmp [gs:r8 + 48]
end_fixtures

; Tried by vary_nowhere, with addresses that are not mapped or not canonical.
fixtures nowhere
    fault mov rax, [rbx]
    fault mov [rbx + 8], cl
    fault mov eax, [rax]
    fault add qword [rsi], 5
    fault lock inc dword [r12]
    fault push qword [rdi]
    fault pop qword [rdi]
    fault xchg [r13], rdx
    fault cmpxchg [rbx], rcx
    fault movsb
    fault rep stosq
    fault lodsd
    fault call [rbx]
    fault jmp [rbx]
    fault call [rbp + 8]
    fault jmp [rbp + 8]
    fault jmp [r12 + 8]
    fault leave
    fault xlatb
    fault bts [rbx], eax
    fault cmpxchg8b [rsi]
    fault outsb
end_fixtures

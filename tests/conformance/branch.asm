; branch.asm - fixtures that branch, call and return.

%include "tests/conformance/fixture.inc"

%macro jump_if 1
    branch j%1 short TO
    branch j%1 near TO
    branch_back j%1 short TO
%endmacro

; Tried by vary_flags, with every combination of the flags.
fixtures jcc
    for_each_condition jump_if
    branch db 0x3e, 0x74, TO - $ - 3 ; jz, hinted as taken
    branch db 0xf2, 0x75, TO - $ - 3 ; bnd jnz
end_fixtures

; Tried by vary_counters.
fixtures loop
    branch loop TO
    branch loope TO
    branch loopne TO
    branch jrcxz TO
    branch_back loop TO
    branch_back loope TO
    branch_back loopne TO
    branch_back jrcxz TO
    branch loop TO, ecx
    branch loope TO, ecx
    branch loopne TO, ecx
    branch jecxz TO
    branch_back loop TO, ecx
    branch_back jecxz TO
end_fixtures

fixtures jmp
    branch jmp short TO
    branch jmp near TO
    branch_back jmp short TO
    branch_back jmp near TO
    branch db 0xf2, 0xeb, TO - $ - 3 ; bnd jmp
end_fixtures

fixtures call
    branch call TO
    branch_back call TO
    try call exit_taken
    branch bnd call TO
end_fixtures

; Tried by vary_targets.
%macro to_register 1
    try call %1
    try jmp %1
%endmacro

fixtures to_register
    for_each to_register, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi
    for_each to_register, r8, r9, r10, r11, r12, r13, r14, r15
    try db 0x3e, 0xff, 0xe0 ; notrack jmp rax
    try db 0xf2, 0xff, 0xd1 ; bnd call rcx
end_fixtures

; Tried by vary_tables: memory and stack are full of addresses to branch to.
%macro to_memory 1
    try %1 [rbx]
    try %1 [r12 + 8]
    try %1 [r13]
    try %1 [rbp + 0x80]
    try %1 [rsp]
    try %1 [rsp + 8]
    try %1 [rsp + rax * 8 + 128]
    try %1 [rsi + rcx * 8 + 64]
    try %1 [rbp + rdx * 8 + 128]
    try %1 [rax * 8 + fixture_memory + 256]
    try %1 [rel fixture_memory + 40]
    try %1 [dword fixture_memory + 56]
%endmacro

fixtures to_memory
    for_each to_memory, call, jmp
    try db 0x3e, 0xff, 0x17 ; notrack call [rdi]
    try db 0x3e, 0xff, 0x27 ; notrack jmp [rdi]
end_fixtures

fixtures ret
    try ret
    try ret 0
    try ret 8
    try ret 40
    try db 0xf3, 0xc3 ; rep ret
    try db 0xf2, 0xc3 ; bnd ret
end_fixtures

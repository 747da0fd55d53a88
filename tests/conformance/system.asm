; system.asm - fixtures that push and pop flags, switch interrupts, use ports, read and
; write registers of the processor; and fixtures for a program that steps itself.

%include "tests/conformance/fixture.inc"

fixtures pushed_flags
    try pushfq
    try pushfw
end_fixtures

; Tried by vary_popped_flags.
fixtures popped_flags
    try popfq
    try popfw
end_fixtures

fixtures interrupts
    try cli
    try sti
end_fixtures

; Tried by vary_interrupted: the interrupt must come after the second instruction.
fixtures shadow
    shadow inc qword [rel fixture_memory]
    shadow nop
    shadow push rax
    shadow pop rcx
    shadow mov rax, [rbx]
    shadow rep movsb
    shadow jmp short TO
    shadow jmp near TO
    shadow jc TO
    shadow loop TO
    shadow loope TO
    shadow jrcxz TO
    shadow ret
    shadow ret 16
    shadow cli
    shadow sti
    shadow pushfq
    shadow call TO
    shadow call rax
    shadow call [rsp]
end_fixtures

; Tried by vary_halted.
fixtures halt
    try hlt
end_fixtures

; ---- ports -----------------------------------------------------------------------------

; Tried by vary_port: reads of port dx return the 32 bits that were written to it. Port
; 80h accepts any byte.
fixtures port
    try out dx, eax
    try out dx, ax
    try out dx, al
    try in eax, dx
    try in ax, dx
    try in al, dx
    try out 0x80, al
    try out 0x80, eax
    try in al, 0x80
    try in eax, 0x80
end_fixtures

; Tried by vary_port_strings.
fixtures port_string
    try insb
    try insd
    try outsb
    try outsd
    try rep insb
    try rep insw
    try rep outsb
    try rep outsd
end_fixtures

; ---- the processor ---------------------------------------------------------------------

%macro read_control 1
    try mov rax, %1
    try mov r9, %1
%endmacro

fixtures control
    for_each read_control, cr0, cr2, cr3, cr4, cr8, dr0, dr1, dr2, dr3, dr6, dr7
    try smsw eax
    try smsw [rbx]
    try sgdt [rbx]
    try sidt [rbx]
    try sldt ecx
    try sldt [rsi]
    try str eax
    try invlpg [rbx]
    try wbinvd
    try invd
    fault rdpid rax
    fault rdfsbase rax
    fault rdgsbase rcx
    fault rdpkru
    fault xgetbv
    fault rdpmc
    fault xtest
    fault db 0x0f, 0x01, 0xe8 ; serialize
    fault db 0x0f, 0x01, 0xc8 ; monitor
    fault db 0xf3, 0x48, 0x0f, 0xae, 0xe0 ; ptwrite rax
    fault db 0xf3, 0x0f, 0xae, 0xf0 ; umonitor eax
    fault db 0xf3, 0x0f, 0xa7, 0xc0 ; rep xcryptecb
end_fixtures

; Tried by vary_processor.
fixtures written_control
    try mov cr0, rax
    try mov cr2, r9
    try mov cr3, rcx
    try mov cr4, rdx
    try mov cr8, r8
    try clts
    try lmsw ax
    try mov dr0, r9
    try mov dr1, r9
    try mov dr2, r9
    try mov dr3, r9
    try mov dr6, r10
    try mov dr7, r11
end_fixtures

; Tried by vary_processor, too, but without post-handlers.
extern processor_gdt
extern processor_idt
fixtures loaded_table
    try lgdt [rsi]
    try lidt [rdi]
    try lgdt [rel processor_gdt]
    try lidt [rel processor_idt]
end_fixtures

; Tried by vary_loaded_selectors.
fixtures loaded_selector
    fault mov ds, eax
    fault mov es, eax
    fault mov ds, [rbx]
    fault mov es, [rbx]
    fault lldt ax
    fault lldt [rbx]
    fault ltr ax
    fault ltr [rbx]
end_fixtures

fixtures undefined
    fault ud2
    fault ud1 eax, ecx
    fault ud1 rax, [rbx]
    fault ud1 eax, [rel fixture_memory]
    fault ud0 eax, ecx
end_fixtures

; Tried by vary_selectors.
fixtures selectors
    try verr ax
    try verw cx
    try lar r8d, ecx
    try lsl rdx, ecx
end_fixtures

; Tried by vary_system, with MSRs in ecx, and leaves of CPUID in eax.
fixtures identity
    try rdmsr
    try cpuid
end_fixtures

; Tried by vary_written_msr.
fixtures written_msr
    fault wrmsr
end_fixtures

; An MSR that no processor has: #GP is raised, and the program goes on at the fix-up.
fixtures bad_msr
    fault rdmsr
    fault wrmsr
end_fixtures

; Each execution of these gives other values.
fixtures clock
    try rdtsc
    try rdtscp
end_fixtures

fixtures random
    fault rdrand rax
    fault rdrand ax
    fault rdseed rax
end_fixtures

; ---- a program that steps itself: vary_stepping ----------------------------------------
; This group has neither sti nor pause, because QEMU loses the
; single-step trap after them.

fixtures stepping
    try nop
    try add rax, rcx
    try push rax
    try pop rdx
    try mov [rbx], rdx
    try pushfq
    try pushfw
    try cli
    try rep movsb
    try ret
    try call rax
    try jmp rax
    branch jmp short TO
    branch call TO
    branch jc TO
    branch loop TO
    branch jrcxz TO
    fault mov rax, [0x10]
    fault div byte [0x10]
end_fixtures

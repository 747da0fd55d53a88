; ap_start.asm - brings each CPU but the first from real mode to ap_main.
;
; The template is copied to a page below 1 MiB, and the start IPI lets the CPU begin there.
; So the linked addresses of the template are not valid. Each dword of the fix-up table
; holds an offset in the page; kernel/cpu/smp_start.c adds the page's address to it. Values
; that differ from boot to boot are read from the variables below, in the image.
;
;   1. real mode, cs = page: flat 32-bit segments
;   2. the boot CPU's page tables, EFER and CR0: long mode, paging on, in this page
;   3. a far jump into a 64-bit segment
;   4. on to the image, the idle thread's stack, an end mark for backtraces, ap_main
;
; Source: SDM vol. 3A, "Multiple-Processor (MP) Initialization", "Initializing IA-32e Mode",
;         "Code- and Data-Segment Descriptor Types"; vol. 3A, "Processor State After Reset"
;         for what INIT leaves: CR4 and EFER are 0, CR0.CD and CR0.NW as they were.

%include "asm_offsets.inc"
%include "kernel/base/proc.inc"

CR0_PE equ 1 << 0
CR0_CD_NW equ 3 << 29       ; caches off: a reset sets these, and INIT does not change them
CR4_PAE equ 1 << 5
MSR_EFER equ 0xc0000080

%define PHYS(symbol) (symbol - KERNEL_VMA)

extern ap_main              ; _Noreturn void ap_main(void)

; DESCRIPTORS: flat descriptors, with the accessed bit set. A CPU that loads a segment
; register would set this bit itself if it were clear. But step 2 makes the page of the
; table read-only. So that write would cause a page fault without a handler, and the CPU
; would reset. QEMU's TCG does not write the bit for CS; hardware and Bochs do.
%macro DESCRIPTORS 0
    dq 0
.CODE32 equ $ - .gdt
    dq 0x00cf9b000000ffff
.DATA equ $ - .gdt
    dq 0x00cf93000000ffff
.CODE64 equ $ - .gdt
    dq 0x00af9b000000ffff
%endmacro

; ---- in the low page -------------------------------------------------------------------

section .rodata

global ap_trampoline_template, ap_trampoline_template_end
align 16
ap_trampoline_template:

; 1.
bits 16
    cli
    cld
    mov ax, cs
    mov ds, ax
    o32 lgdt [.gdt_pointer - ap_trampoline_template]
    mov eax, cr0
    and eax, ~CR0_CD_NW
    or eax, CR0_PE
    mov cr0, eax
    jmp dword .CODE32:.protected - ap_trampoline_template
.fixup_protected equ $ - 6 - ap_trampoline_template

; 2.
bits 32
.protected:
    mov eax, .DATA
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov eax, CR4_PAE
    mov cr4, eax
    mov eax, [PHYS(ap_start_cr3)]
    mov cr3, eax
    mov eax, [PHYS(ap_start_efer)]
    xor edx, edx
    mov ecx, MSR_EFER
    wrmsr
    mov eax, [PHYS(ap_start_cr0)]
    mov cr0, eax

; 3.
    jmp .CODE64:.long - ap_trampoline_template
.fixup_long equ $ - 6 - ap_trampoline_template

; 4.
bits 64
.long:
    mov rax, ap_start_high
    jmp rax

align 8
.gdt:
    DESCRIPTORS
.gdt_pointer:
    dw .gdt_pointer - .gdt - 1
.fixup_gdt equ $ - ap_trampoline_template
    dd .gdt - ap_trampoline_template
ap_trampoline_template_end:

global ap_trampoline_gdt, ap_trampoline_gdt_end ; for a test: uint64_t[]
ap_trampoline_gdt equ ap_trampoline_template.gdt
ap_trampoline_gdt_end equ ap_trampoline_template.gdt_pointer

global ap_trampoline_fixups_table, ap_trampoline_fixups_table_end
align 4
ap_trampoline_fixups_table:
    dd ap_trampoline_template.fixup_protected
    dd ap_trampoline_template.fixup_long
    dd ap_trampoline_template.fixup_gdt
ap_trampoline_fixups_table_end:

; ---- in the image ----------------------------------------------------------------------

section .text
proc ap_start_high
    mov rsp, [rel ap_start_stack]
    xor ebp, ebp
    push rbp
    jmp ap_main
endproc ap_start_high

; Written by smp_start(), read by the CPU that starts.
section .bss nobits alloc noexec write align=8
global ap_start_cr3, ap_start_cr0, ap_start_efer, ap_start_stack
ap_start_stack:             ; uint64_t: the top of its stack
    resq 1
ap_start_cr3:               ; uint32_t: from paging_ap_tables()
    resd 1
ap_start_cr0:               ; uint32_t, with paging
    resd 1
ap_start_efer:              ; uint32_t, without LMA
    resd 1

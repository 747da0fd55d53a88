; start.asm - from the loader's 32-bit protected mode to kmain in long mode.
;
; Runs once, on the first CPU, interrupts off. The 32-bit part is in .boot, which is linked
; at its physical address; the last steps run in the higher half. Owns the early page tables
; in .init.bss, and the first stack, in .bss.
;
;   1. remember what the loader left: which one it was, and where its information is
;   2. clear .bss and .init.bss
;   3. make sure that the CPU has what the kernel needs, or say so and stop: cpu_check.asm
;   4. fill the early page tables
;   5. PAE, long mode, paging: in this order, as the manual prescribes
;   6. a far jump into a 64-bit segment
;   7. on to the higher half, a stack, an end mark for backtraces, kmain
;   8. kernel_run, which frees the code of boot: no stack frame of that code may be left
;      then
;
; Source: SDM vol. 3A, "Initializing IA-32e Mode".

%include "asm_offsets.inc"
%include "kernel/base/proc.inc"

PVH_MAGIC equ 0x336ec578    ; the magic of hvm_start_info; GRUB passes its own in eax

CR0_PE equ 1 << 0
CR0_MP equ 1 << 1
CR0_ET equ 1 << 4
CR0_NE equ 1 << 5
CR0_PG equ 1 << 31
CR4_PAE equ 1 << 5
MSR_EFER equ 0xc0000080
EFER_LME equ 1 << 8
FLAGS_FIXED equ 1 << 1      ; always set; all others clear

PAGE_PRESENT equ 1 << 0
PAGE_WRITE equ 1 << 1
PAGE_LARGE equ 1 << 7
TABLE_LEN equ 4096
LARGE_PAGE_LEN equ 0x200000
ENTRIES equ 512

STACK_LEN equ 16 * 1024

%define PHYS(symbol) (symbol - KERNEL_VMA)
%define PML4_INDEX(address) (((address) >> 39) & (ENTRIES - 1))
%define PDPT_INDEX(address) (((address) >> 30) & (ENTRIES - 1))

; linker.ld repeats these numbers, and compares its own with them.
global memmap_kernel_vma, memmap_image_start
memmap_kernel_vma equ KERNEL_VMA
memmap_image_start equ IMAGE_START

extern _bss, _ebss, _init_bss, _init_end
extern cpu_check
extern kmain                ; void kmain(uint32_t magic, uint64_t info_phys)
extern kernel_run           ; _Noreturn void kernel_run(void)

; ---- 32-bit ----------------------------------------------------------------------------

section .boot progbits alloc exec nowrite align=16
bits 32

; 1. GRUB: eax = magic, ebx = physical address of the information.
global start_multiboot2:function (start_multiboot2.end - start_multiboot2)
start_multiboot2:
    mov edi, eax
    jmp start_common
.end:

;    PVH: ebx = physical address of hvm_start_info.
global start_pvh:function (start_pvh.end - start_pvh)
start_pvh:
    mov edi, PVH_MAGIC
    jmp start_common
.end:

; In: edi = magic, ebx = physical address of the loader's information. The segments are flat,
;     but their table may be overwritten already.
;
; Nothing else is known. So flags, control registers and EFER get whole values, and no bit of
; the loader's values stays (NT, AC, caches off, 5-level paging). The other CPUs can get the
; same values.
;
; Source: Multiboot2 Specification 2.0, "I386 machine state"; Xen, "x86/HVM direct boot
;         ABI".
proc start_common
    cli
    cld
    mov esp, PHYS(boot_stack_top)
    push FLAGS_FIXED
    popfd
    mov ebp, edi

; 2. Clear .bss and .init.bss. The loader clears them at the first boot, but not at a warm
; reset of the guest.
    xor eax, eax
    mov edi, PHYS(_bss)
    mov ecx, PHYS(_ebss)
    sub ecx, edi
    shr ecx, 2
    rep stosd
    mov edi, PHYS(_init_bss)
    mov ecx, PHYS(_init_end)
    sub ecx, edi
    shr ecx, 2
    rep stosd

; 3.
    call cpu_check

; 4. One page directory of large pages for each GiB of the first 4 GiB ...
    mov edi, PHYS(boot_pd)
    mov eax, PAGE_PRESENT | PAGE_WRITE | PAGE_LARGE
    mov ecx, 4 * ENTRIES
.next_page:
    mov [edi], eax
    add eax, LARGE_PAGE_LEN
    add edi, 8
    loop .next_page

;    ... The identity map and the direct map consist of these directories ...
    mov edi, PHYS(boot_pdpt_low)
    mov eax, PHYS(boot_pd) + (PAGE_PRESENT | PAGE_WRITE)
    mov ecx, 4
.next_directory:
    mov [edi], eax
    add eax, TABLE_LEN
    add edi, 8
    loop .next_directory

;    ... and the first of them is also mapped where the image is linked.
    mov dword [PHYS(boot_pdpt_high) + 8 * PDPT_INDEX(KERNEL_VMA)], \
        PHYS(boot_pd) + (PAGE_PRESENT | PAGE_WRITE)

    mov eax, PHYS(boot_pdpt_low) + (PAGE_PRESENT | PAGE_WRITE)
    mov [PHYS(boot_pml4)], eax
    mov [PHYS(boot_pml4) + 8 * PML4_INDEX(DIRECT_MAP_BASE)], eax
    mov eax, PHYS(boot_pdpt_high) + (PAGE_PRESENT | PAGE_WRITE)
    mov [PHYS(boot_pml4) + 8 * PML4_INDEX(KERNEL_VMA)], eax

; 5.
    mov eax, CR4_PAE
    mov cr4, eax
    mov eax, PHYS(boot_pml4)
    mov cr3, eax
    mov ecx, MSR_EFER
    mov eax, EFER_LME
    xor edx, edx
    wrmsr
    mov eax, CR0_PG | CR0_NE | CR0_ET | CR0_MP | CR0_PE
    mov cr0, eax

; 6.
    lgdt [boot_gdt_pointer]
    jmp BOOT_CS:start_long
endproc start_common

align 8
boot_gdt:
    dq 0
BOOT_CS equ $ - boot_gdt
    dq 0x00af9b000000ffff   ; code, 64-bit, ring 0
BOOT_DS equ $ - boot_gdt
    dq 0x00cf93000000ffff   ; data, flat, ring 0
boot_gdt_pointer:
    dw boot_gdt_pointer - boot_gdt - 1
    dq boot_gdt

bits 64
start_long:
    mov eax, BOOT_DS
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    mov rax, start_high     ; more than 2 GiB away: no direct jump reaches it
    jmp rax

; ---- 64-bit, higher half ---------------------------------------------------------------

section .init.text progbits alloc exec nowrite align=16

; 7. A zero frame pointer and a zero return address end every backtrace.
proc start_high
    mov rsp, boot_stack_top
    mov edi, ebp
    mov esi, ebx
    xor ebp, ebp
    frame end
    call kmain

; 8.
    push rbp
    jmp kernel_run
endproc start_high

section .init.bss nobits alloc noexec write align=4096

global boot_pml4
boot_pml4:
    resb TABLE_LEN
boot_pdpt_low:
    resb TABLE_LEN
boot_pdpt_high:
    resb TABLE_LEN
boot_pd:
    resb 4 * TABLE_LEN

section .bss.page_aligned nobits alloc noexec write align=4096

global boot_stack, boot_stack_top
boot_stack:
    resb STACK_LEN
boot_stack_top:

code_sections .boot, .init.text

; loader.asm - a loader that leaves in the CPU whatever its specification does not forbid, or
; names a CPU or a table that is not there.
;
; tests/session/test_smp_start.py puts it into a copy of the kernel's file, at LOADER, as the
; entry for PVH; what it does is what multiboot2 and PVH leave open. Then it goes on to
; TARGET, with ebx as it was.
;
;   nasm -f bin -D LOADER=0x1f0000 -D TARGET=0x1000a0 [-D GHOST=9|STRAY=0xd0000000] loader.asm
;
; GHOST: the state of the CPU is left alone. In the MADT the CPU with APIC id 1 gets this one.
; STRAY: likewise; this is the address of the first table of the RSDT.

bits 32
org LOADER

CR0_LEFT equ 1 << 30 | 1 << 29 | 1 << 18 | 1 << 3 | 1 << 2 ; CD, NW, AM, TS, EM
CR4_LEFT equ 1 << 7 | 1 << 4 | 1 << 3 | 1 << 2 | 1 << 1   ; PGE, PSE, DE, TSD, PVI
EFER_LEFT equ 1 << 11 | 1 << 0                            ; NXE, SCE
FLAGS_LEFT equ 1 << 21 | 1 << 18 | 1 << 14 | 3 << 12 | 1 << 10 | 1 << 2
MSR_PAT equ 0x277
MSR_EFER equ 0xc0000080

START_INFO_RSDP equ 32
RSDP_RSDT equ 16
TABLE_LEN equ 4
TABLE_CHECKSUM equ 9
RSDT_ENTRIES equ 36

%ifdef STRAY
    mov esi, [ebx + START_INFO_RSDP]
    mov esi, [esi + RSDP_RSDT]
    mov dword [esi + RSDT_ENTRIES], STRAY
    mov ecx, [esi + TABLE_LEN]
    xor eax, eax
.next_byte:
    add al, [esi + ecx - 1]
    loop .next_byte
    sub [esi + TABLE_CHECKSUM], al
%elifdef GHOST
MADT_ENTRIES equ 44

    mov esi, [ebx + START_INFO_RSDP]
    mov esi, [esi + RSDP_RSDT]
    add esi, RSDT_ENTRIES
.next_table:
    mov edi, [esi]
    add esi, 4
    cmp dword [edi], "APIC"
    jne .next_table
    add edi, MADT_ENTRIES
.next_entry:                ; type, length; a local APIC has two ids behind these
    cmp word [edi], 0x0800
    jne .other
    cmp byte [edi + 3], 1
    je .found
.other:
    movzx eax, byte [edi + 1]
    add edi, eax
    jmp .next_entry
.found:
    mov byte [edi + 3], GHOST
    sub byte [edi + 2], GHOST - 1 ; for the checksum
%else
    mov ecx, MSR_PAT
    mov eax, 0x07010600     ; memory of page tables' first kind: not cached
    mov edx, 0x07010600
    wrmsr
    mov ecx, MSR_EFER
    rdmsr
    or eax, EFER_LEFT
    wrmsr
    mov eax, cr4
    or eax, CR4_LEFT
    mov cr4, eax
    mov eax, cr0
    or eax, CR0_LEFT
    mov cr0, eax
    lgdt [no_table]
    lidt [no_table]
    push FLAGS_LEFT
    popfd
    mov eax, 0x11111111
    mov ecx, eax
    mov edx, eax
    mov esi, eax
    mov edi, eax
    mov ebp, eax
    mov esp, eax
%endif
    jmp TARGET

no_table:
    dw 0
    dd 0

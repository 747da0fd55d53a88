; cpu_check.asm - does the CPU have all features that the kernel uses without a check?
;
; Runs once, on the first CPU, in 32-bit protected mode without paging, before anything that
; needs a feature. On a CPU that lacks a feature, the kernel would end in a triple fault or,
; in the middle of a probe, in #UD. The missing features are printed on each device that can
; show text, and the machine stops. The code assumes that the other CPUs have the same
; features.
;
; Features that the kernel checks for before it uses them (SMEP, SMAP, UMIP, x2APIC) are not
; in the table.
;
; Source: SDM vol. 2A, "CPUID - CPU Identification"; AMD64 APM vol. 3, "Obtaining Processor
; Information Via the CPUID Instruction"; FreeVGA, "VGA/SVGA Video Programming".

%include "asm_offsets.inc"
%include "kernel/base/proc.inc"

CPUID_BASIC equ 1
CPUID_EXTENDED equ 0x80000001
LEAF_GROUP equ 0x80000000   ; leaf & LEAF_GROUP is the first leaf of the leaf's group, and
                            ; cpuid of this first leaf returns the last leaf of the group
FLAGS_ID equ 1 << 21        ; software can change it if the CPU has CPUID

COM1 equ 0x3f8
COM1_LSR equ COM1 + 5
LSR_THR_EMPTY equ 1 << 5
SEND_TRIES equ 1000000      ; reads of COM1_LSR, if COM1 never becomes ready
DEBUGCON equ 0xe9           ; a read gives the same number if the port exists
QEMU_EXIT equ 0xf4          ; drivers/qemu_exit.h
QEMU_EXIT_PANIC equ 0x12

VGA_MEMORY equ 0xb8000
VGA_ROW equ 2 * 80
VGA_ATTRIBUTE equ 0x07
VGA_MISC_READ equ 0x3cc     ; 0xff: no device
VGA_GRAPHICS equ 0x3ce      ; index; data behind it
VGA_GRAPHICS_MISC equ 6
VGA_GRAPHICS_MODE equ 0x0d  ; memory map and "not text"
VGA_GRAPHICS_TEXT equ 0x0c  ; B8000, text

%define PHYS(symbol) (symbol - KERNEL_VMA)

section .boot progbits alloc exec nowrite align=16
bits 32

; cpu_check - return if the CPU has every feature of the table; else print the missing
; features and stop.
; In:   esp = a stack, DF clear, interrupts off
; Out:  ebx, ebp as they were; all else is lost
proc cpu_check
    pushfd
    pop eax
    mov ecx, eax
    xor eax, FLAGS_ID
    push eax
    popfd
    pushfd
    pop eax
    xor eax, ecx
    push ecx
    popfd
    test eax, FLAGS_ID
    jz .no_cpuid

    push ebx
    push ebp
    xor ebp, ebp            ; how many are missing
    mov edi, cpu_features
.next:
    mov esi, [edi + FEATURE_LEAF]
    mov eax, esi
    and eax, LEAF_GROUP
    cpuid
    cmp eax, esi
    jb .missing
    mov eax, esi
    cpuid
    and ecx, [edi + FEATURE_ECX]
    and edx, [edi + FEATURE_EDX]
    or ecx, edx
    jnz .there
.missing:
    test ebp, ebp
    jnz .said
    mov esi, head_text
    call cpu_check_say
.said:
    inc ebp
    lea esi, [edi + FEATURE_TEXT]
    call cpu_check_say
.there:
    add edi, FEATURE_TEXT
    xor eax, eax
    mov ecx, -1
    repne scasb             ; the next row is behind the text
    cmp edi, cpu_features_end
    jb .next
    test ebp, ebp
    jnz cpu_check_stop
    pop ebp
    pop ebx
    ret

.no_cpuid:
    mov esi, head_text
    call cpu_check_say
    mov esi, cpuid_text
    call cpu_check_say
    jmp cpu_check_stop
endproc cpu_check

; cpu_check_stop - never returns. QEMU ends with the status of a panic.
cpu_check_stop:
    mov esi, tail_text
    call cpu_check_say
    mov al, QEMU_EXIT_PANIC
    out QEMU_EXIT, al
.halt:
    cli
    hlt
    jmp .halt

; ---- text ------------------------------------------------------------------------------

; cpu_check_say - print the string at esi. All registers but esi are kept.
cpu_check_say:
    pushad
    call vga_find
.next_char:
    lodsb
    test al, al
    jz .done
    call com1_send
    call debugcon_send
    call vga_put
    jmp .next_char
.done:
    mov [PHYS(vga_at)], edi
    popad
    ret

; In: al = the character. Lost: ah, ecx, edx.
com1_send:
    mov ah, al
    mov dx, COM1_LSR
    mov ecx, SEND_TRIES
.wait:
    in al, dx
    test al, LSR_THR_EMPTY
    loopz .wait
    mov al, ah
    mov dx, COM1
    out dx, al
    ret

; In: al = the character. Lost: ah.
debugcon_send:
    mov ah, al
    in al, DEBUGCON
    cmp al, DEBUGCON
    mov al, ah
    jne .done
    out DEBUGCON, al
.done:
    ret

; vga_find - find the place on the screen for the next character.
; Out: edi = its address; 0: there is no screen, or it shows graphics. Lost: eax, edx.
vga_find:
    mov edi, [PHYS(vga_at)]
    test edi, edi
    jnz .done
    mov dx, VGA_MISC_READ
    in al, dx
    cmp al, 0xff
    je .done
    mov dx, VGA_GRAPHICS
    mov al, VGA_GRAPHICS_MISC
    out dx, al
    inc edx
    in al, dx
    and al, VGA_GRAPHICS_MODE
    cmp al, VGA_GRAPHICS_TEXT
    jne .done
    mov edi, VGA_MEMORY
.done:
    ret

; In: al = the character, edi = its place. Out: edi = the next place. Lost: eax, ecx, edx.
vga_put:
    test edi, edi
    jz .done
    cmp al, 13
    je .done
    cmp al, 10
    je .row
    mov ah, VGA_ATTRIBUTE
    stosw
    ret
.row:                       ; the rest of the row becomes blank
    mov eax, edi
    sub eax, VGA_MEMORY
    xor edx, edx
    mov ecx, VGA_ROW
    div ecx
    sub ecx, edx
    shr ecx, 1
    mov ax, VGA_ATTRIBUTE << 8 | ' '
    rep stosw
.done:
    ret

head_text:
    db 13, 10, "sonde cannot run on this CPU, which lacks:", 13, 10, 0
cpuid_text:
    db "  CPUID: the instruction that tells what a CPU can do", 13, 10, 0
tail_text:
    db "Take another CPU. QEMU has one with all of these: -cpu max", 13, 10, 0

; ---- the table -------------------------------------------------------------------------

; feature leaf, mask of ecx, mask of edx, "NAME: what it is". docs/boot-options.md lists
; them.
%macro feature 4
    dd %1, %2, %3
    db "  ", %4, 13, 10, 0
%endmacro
FEATURE_LEAF equ 0
FEATURE_ECX equ 4
FEATURE_EDX equ 8
FEATURE_TEXT equ 12

cpu_features:
    feature CPUID_BASIC, 0, 1 << 4, "TSC: the time stamp counter, which is the clock"
    feature CPUID_BASIC, 0, 1 << 5, "MSR: model specific registers"
    feature CPUID_BASIC, 0, 1 << 6, "PAE: page tables with entries of 64 bits"
    feature CPUID_BASIC, 0, 1 << 9, "APIC: a local interrupt controller"
    feature CPUID_BASIC, 0, 1 << 13, "PGE: global pages"
    feature CPUID_BASIC, 0, 1 << 15, "CMOV: conditional moves, which compilers use"
    feature CPUID_BASIC, 1 << 13, 0, "CX16: cmpxchg16b, in the rings of the tracer"
    feature CPUID_EXTENDED, 0, 1 << 20, "NX: data that cannot be executed"
    feature CPUID_EXTENDED, 0, 1 << 29, "LM: the 64-bit mode"
    feature CPUID_EXTENDED, 1 << 0, 0, "LAHF: lahf and sahf in 64-bit mode, in detours"
cpu_features_end:

section .bss nobits alloc noexec write align=4
vga_at: resd 1

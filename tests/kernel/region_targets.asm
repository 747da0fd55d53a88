; region_targets.asm - code in which a thread can be parked between two instructions that one
; jump would displace.

%include "kernel/base/proc.inc"

section .text

; size_t region_scan(const char *from, size_t len): how many bytes are 0, up to the first
; that is not. The region at region_scan_at is nop, repe scasb, nop, nop: its second
; instruction takes as long as there are bytes, and can be interrupted in its midst.
proc region_scan
    mov rcx, rsi
    xor eax, eax
global region_scan_at
region_scan_at:
    nop
    repe scasb
    nop
    nop
    mov rax, rsi
    jz  .all
    inc rcx
.all:
    sub rax, rcx
    ret
endproc region_scan

; uint32_t region_mix(uint32_t x): three short instructions from region_mix_at on, which one
; jump displaces.
proc region_mix
    mov eax, edi
global region_mix_at
region_mix_at:
    inc eax
    ror eax, 1
    xor eax, edi
    ret
endproc region_mix

; uint32_t region_choose(uint32_t x): the same with branches: x + 3 if x is odd, else x - 5.
proc region_choose
    mov eax, edi
    test al, 1
global region_choose_at
region_choose_at:
    jz  .even
    jmp short .odd
    nop
.odd:
    add eax, 3
    ret
.even:
    sub eax, 5
    ret
endproc region_choose

; uint32_t region_late(uint32_t x): as region_mix, for a branch that is written to its middle.
proc region_late
    mov eax, edi
global region_late_at
region_late_at:
    inc eax
    ror eax, 1
    xor eax, edi
    ret
endproc region_late

; uint32_t region_side(uint32_t x): x, unless something else is written over the NOP.
proc region_side
    mov eax, edi
global region_enter_at
region_enter_at:
    db 0x0f, 0x1f, 0x44, 0x00, 0x00
    ret
endproc region_side

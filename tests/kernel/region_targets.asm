; region_targets.asm - functions with regions: several short instructions that one
; jump can displace. In one of them a thread can be stopped between two
; instructions of the region.

%include "kernel/base/proc.inc"

section .text

; size_t region_scan(const char *from, size_t len): return how many bytes at @from are
; 0, up to the first that is not. The region at region_scan_at is nop, repe scasb,
; nop, nop. The time of its second instruction grows with @len, and it can be
; interrupted in the middle.
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

; uint32_t region_mix(uint32_t x): has three short instructions from region_mix_at on,
; which one jump can displace.
proc region_mix
    mov eax, edi
global region_mix_at
region_mix_at:
    inc eax
    ror eax, 1
    xor eax, edi
    ret
endproc region_mix

; uint32_t region_choose(uint32_t x): return x + 3 if x is odd, else x - 5. Two of the
; three short instructions from region_choose_at on are branches.
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

; uint32_t region_late(uint32_t x): as region_mix(). A test writes a branch into
; region_side() that leads to the second instruction from region_late_at on.
proc region_late
    mov eax, edi
global region_late_at
region_late_at:
    inc eax
    ror eax, 1
    xor eax, edi
    ret
endproc region_late

; uint32_t region_outer(uint32_t x): return region_side(x).
proc region_outer
    call region_side
    ret
endproc region_outer

; uint32_t region_side(uint32_t x): return x, unless a test has replaced the NOP at
; region_enter_at by a branch.
proc region_side
    mov eax, edi
global region_enter_at
region_enter_at:
    db 0x0f, 0x1f, 0x44, 0x00, 0x00
    ret
endproc region_side

; refused.asm - instructions that are never executed: those on which a probe must
; be refused, and those on which it must be accepted although the test machine
; cannot execute them.
;
; They are data, so they are not in the text of the kernel; test_refused.c writes one
; after the other to refusal_site.

%include "kernel/base/proc.inc"

section .text

; void refusal_site(void): a row of NOPs with two bytes. Of a row of NOPs with one byte,
; not all could be jumps at the same time, see docs/optimize.md.
proc refusal_site
    times 16 db 0x66, 0x90
    ret
endproc refusal_site

; sample: make a struct sample of refusal.h. The bytes may be several instructions; the
; probe is on the first.
%macro sample 1+
    %defstr SAMPLE_TEXT %1
    [section .rodata.sample_texts progbits alloc noexec nowrite]
%%text:
    db SAMPLE_TEXT, 0
%%bytes:
    %1
%%end:
    [section .rodata]
    dq %%text, %%bytes, %%end - %%bytes
%endmacro

section .rodata
align 8
global samples_refused
samples_refused:
    sample int3
    sample db 0xcd, 0x03 ; int 3, the long way
    sample int 0x80
    sample int1

    sample call far [rbx]
    sample jmp far [rbx]
    sample db 0x48, 0xff, 0x2b ; rex.w jmp far [rbx]
    sample retf
    sample retf 8
    sample db 0x48, 0xcb ; rex.w retf
    sample iretd
    sample iretq
    sample db 0xf2, 0x0f, 0x01, 0xca ; erets
    sample db 0xf3, 0x0f, 0x01, 0xca ; eretu
    sample syscall
    sample sysret
    sample sysenter
    sample sysexit
    sample rsm
    sample db 0x0f, 0x37 ; getsec

    sample mov ss, eax
    sample mov ss, [rbx]
    sample mov fs, ecx
    sample mov gs, eax
    sample pop fs
    sample pop gs
    sample lss eax, [rbx]
    sample lfs rax, [rbx]
    sample lgs ecx, [rbx]
    sample swapgs
    sample wrfsbase rax
    sample wrgsbase rax
    sample db 0xf3, 0x48, 0x0f, 0xae, 0xe8 ; incsspq rax
    sample db 0xf3, 0x0f, 0x01, 0x28 ; rstorssp [rax]
    sample db 0xf3, 0x0f, 0x01, 0xea ; saveprevssp
    sample db 0xf3, 0x0f, 0x01, 0xe8 ; setssbsy
    sample db 0x48, 0x0f, 0x38, 0xf6, 0x03 ; wrssq [rbx], rax

    sample mwait
    sample db 0x66, 0x0f, 0xae, 0xf1 ; tpause ecx
    sample db 0xf2, 0x0f, 0xae, 0xf1 ; umwait ecx
    sample db 0x0f, 0x01, 0xfb ; mwaitx
    sample db 0xfb, 0xf4 ; sti, hlt
    sample db 0xfb, 0x0f, 0x01, 0xc9 ; sti, mwait

    sample db 0xc7, 0xf8, 0, 0, 0, 0 ; xbegin
    sample xabort 5
    sample xend

    sample vmcall
    sample vmlaunch
    sample vmresume
    sample vmxoff
    sample vmptrld [rbx]
    sample vmrun
    sample vmmcall
    sample stgi
    sample db 0x0f, 0x01, 0xcf ; encls
    sample db 0x0f, 0x01, 0xd7 ; enclu

    sample db 0x66, 0x74, 0x00 ; jz
    sample db 0x66, 0x0f, 0x84, 0, 0, 0, 0 ; jz near
    sample db 0x66, 0xeb, 0x00 ; jmp
    sample db 0x66, 0xe9, 0, 0, 0, 0 ; jmp near
    sample db 0x66, 0xff, 0xe0 ; jmp rax
    sample db 0x66, 0xff, 0x23 ; jmp [rbx]
    sample db 0x66, 0xe8, 0, 0, 0, 0 ; call
    sample db 0x66, 0xff, 0xd0 ; call rax
    sample db 0x66, 0xff, 0x13 ; call [rbx]
    sample db 0x66, 0xe2, 0x00 ; loop
    sample db 0x66, 0xe3, 0x00 ; jrcxz
    sample db 0x66, 0xc3 ; ret
    sample db 0x66, 0xc2, 0x08, 0x00 ; ret 8
    sample db 0x66, 0x48, 0xff, 0xd0 ; rex.w call rax
    sample db 0x48, 0x66, 0x01, 0xc8 ; a rex that processors ignore
    sample db 0x41, 0x3e, 0xff, 0xd0 ; the same, call rax
    sample db 0x48, 0x66, 0x9c ; the same, pushfw
    sample db 0x48, 0x66, 0x9d ; the same, popfw

    sample db 0x48, 0x8d, 0x05, 0x00, 0xff, 0xff, 0x7f ; lea rax, [rip + 0x7fffff00]
    sample db 0x48, 0x8b, 0x05, 0x00, 0xff, 0xff, 0x7f ; mov rax, [rip + 0x7fffff00]

    sample db 0x06 ; push es, of 32-bit mode
    sample db 0x0f, 0x04
    sample db 0xf0, 0x90 ; lock nop
    sample db 0xc4, 0xe0, 0x00, 0x00 ; VEX map 0
global samples_refused_end
samples_refused_end:

; These are decoded and accepted, and their copies are right.
global samples_copied
samples_copied:
    sample vpcmov xmm1, xmm2, xmm3, xmm4
    sample vprotd xmm1, xmm2, 7
    sample vphaddbd xmm1, [rbx]
    sample vpcomb xmm1, xmm2, xmm3, 1
    sample vpshab xmm1, [rel $], xmm3
    sample db 0x8f, 0xe9, 0x78, 0x01, 0xc8 ; blcfill eax, eax
    sample db 0x8f, 0xea, 0x78, 0x10, 0xc1, 1, 2, 3, 4 ; bextr eax, ecx, imm32
    sample vaddps zmm0, zmm1, zmm2
    sample vmovdqu64 zmm3, [rel $ + 64]
    sample vmovdqu8 [rbx + 64], zmm4
    sample vpternlogd zmm1, zmm2, [rel $], 0x96
    sample vaddpd zmm1 {k1}{z}, zmm2, [rbx] {1to8}
    sample vpcompressd [rsi] {k2}, zmm5
    sample kmovw k1, eax
    sample kaddq k1, k2, k3
    sample pfadd mm0, mm1
    sample pi2fd mm2, [rbx]
    sample extrq xmm1, 3, 4
    sample femms
    sample rdfsbase rax
    sample xgetbv
    sample db 0x0f, 0x01, 0xe8 ; serialize
    sample db 0x66, 0x0f, 0x38, 0xf8, 0x03 ; movdir64b rax, [rbx]
    sample db 0x0f, 0x38, 0xf9, 0x03 ; movdiri [rbx], eax
    sample db 0x0f, 0x01, 0xee ; rdpkru
    sample xtest
    sample adcx eax, edx
    sample adox ecx, [rbx]
    sample xsetbv
    sample db 0xf3, 0x48, 0x0f, 0xae, 0xe0 ; ptwrite rax
    sample invpcid rax, [rbx]
    sample invept rax, [rbx]
    sample vmread rax, rcx
    sample wbinvd
    sample invd
    sample invlpg [rbx]
    sample xsavec [rbx]
    sample xrstors [rbx]
    sample fxrstor [rel $]
    sample monitor
    sample rdpmc
    sample db 0x0f, 0xa7, 0xc0 ; xstore
    sample db 0xc5, 0xfb, 0xf0, 0x05, 0, 0, 0, 0 ; vlddqu xmm0, [rip]
    sample db 0x67, 0x48, 0x8d, 0x05, 0, 0, 0, 0 ; lea rax, [eip]
global samples_copied_end
samples_copied_end:

global refused_list
refused_list:
    incbin "tests/conformance/refused.tsv"
global refused_list_end
refused_list_end:

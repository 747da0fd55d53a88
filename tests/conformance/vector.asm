; vector.asm - fixtures of x87, MMX, SSE and AVX, and of extensions that most processors
; lack. Tried by vary_vectors. They have fix-ups, since an instruction that the processor
; lacks raises #UD.

%include "tests/conformance/fixture.inc"

fixtures x87
    fault fld1
    fault fldpi
    fault fldz
    fault fld st3
    fault fadd st0, st2
    fault fsubp st1, st0
    fault fmul st0, st1
    fault fdiv st0, st3
    fault fsqrt
    fault fsin
    fault fchs
    fault fabs
    fault fxch st2
    fault fcomi st0, st1
    fault fcmovb st0, st1
    fault fcom st1
    fault fnstsw ax
    fault fnstsw [rbx]
    fault fnstcw [rbx]
    fault fldcw [rel fixture_word]
    fault fld dword [rbx]
    fault fld qword [rbx]
    fault fld tword [rbx]
    fault fild dword [rsi]
    fault fild qword [rsi]
    fault fst dword [rdi]
    fault fstp qword [rdi]
    fault fstp tword [rel fixture_memory + 32]
    fault fistp dword [r12]
    fault fisttp qword [r12]
    fault fincstp
    fault ffree st4
    fault fninit
    fault fnclex
    fault fwait
    fault fnop
end_fixtures

fixtures mmx
    fault movd mm0, eax
    fault movq mm1, [rbx]
    fault movq [rsi], mm2
    fault paddb mm0, mm3
    fault pxor mm4, mm5
    fault pshufw mm1, mm2, 0x1b
    fault maskmovq mm0, mm1
    fault emms
end_fixtures

fixtures sse
    fault movaps xmm0, xmm5
    fault movups xmm1, [rbx]
    fault movups [rsi], xmm2
    fault movaps xmm3, [rel fixture_memory + 32]
    fault movdqa [rel fixture_memory + 48], xmm4
    fault movdqu xmm9, [rbp + 8]
    fault movq xmm0, rax
    fault movq rcx, xmm1
    fault movd xmm2, edx
    fault movnti [rdi], eax
    fault movntdq [rel fixture_memory + 64], xmm8
    fault addps xmm0, xmm1
    fault mulsd xmm2, xmm3
    fault divss xmm4, [rbx]
    fault sqrtpd xmm5, xmm6
    fault cvtsi2sd xmm7, rax
    fault cvttsd2si rdx, xmm1
    fault cvtss2si eax, [rsi]
    fault ucomiss xmm0, xmm1
    fault comisd xmm2, [rbx]
    fault cmpps xmm0, xmm1, 2
    fault andnps xmm3, xmm4
    fault shufps xmm0, xmm1, 0x4e
    fault unpcklps xmm1, xmm2
    fault paddd xmm0, xmm15
    fault pmullw xmm10, xmm11
    fault pcmpeqb xmm1, [rel fixture_memory + 16]
    fault pmovmskb eax, xmm3
    fault pshufd xmm4, xmm5, 0xb1
    fault psrldq xmm6, 3
    fault pinsrw xmm1, ecx, 5
    fault pextrw edx, xmm1, 2
    fault pshufb xmm0, xmm2
    fault palignr xmm3, xmm4, 7
    fault pextrq rax, xmm1, 1
    fault pinsrd xmm2, [rbx], 3
    fault blendvps xmm1, xmm2
    fault ptest xmm1, xmm2
    fault roundsd xmm1, xmm2, 3
    fault pcmpistri xmm1, xmm2, 0x0c
    fault pclmulqdq xmm1, xmm2, 0x11
    fault aesenc xmm1, xmm2
    fault aeskeygenassist xmm3, xmm4, 1
    fault sha1msg1 xmm1, xmm2
    fault maskmovdqu xmm0, xmm1
    fault ldmxcsr [rel fixture_mxcsr]
    fault stmxcsr [rbx]
    fault fxsave [rel fixture_memory + 256]
    fault xsave [rel fixture_memory + 1024]
    fault xsaveopt [rel fixture_memory + 1024]
end_fixtures

fixtures avx
    fault vmovaps ymm0, ymm5
    fault vmovups ymm1, [rbx]
    fault vmovups [rsi], ymm2
    fault vmovdqu ymm3, [rel fixture_memory + 33]
    fault vaddps ymm0, ymm1, ymm2
    fault vmulpd ymm3, ymm4, [rsi]
    fault vaddsd xmm1, xmm2, xmm3
    fault vxorps ymm5, ymm5, ymm5
    fault vpaddd ymm6, ymm7, ymm8
    fault vpshufb ymm1, ymm2, [rel fixture_memory + 64]
    fault vperm2f128 ymm1, ymm2, ymm3, 0x21
    fault vextractf128 [rbx], ymm4, 1
    fault vinserti128 ymm1, ymm2, xmm3, 1
    fault vbroadcastss ymm1, [rbx]
    fault vpbroadcastd ymm2, xmm3
    fault vpermq ymm1, ymm2, 0x4e
    fault vpblendd ymm1, ymm2, ymm3, 0xaa
    fault vmaskmovps ymm1, ymm2, [rbx]
    fault vpgatherdd xmm1, [rbx + xmm9 * 1], xmm2
    fault vptest ymm1, ymm2
    fault vpmovmskb eax, ymm3
    fault vfmadd231ps ymm1, ymm2, ymm3
    fault vcvtph2ps ymm1, xmm2
    fault vzeroupper
    fault vzeroall
    fault vpclmulqdq xmm1, xmm2, xmm3, 1
    fault vaesenc xmm1, xmm2, xmm3
end_fixtures

; QEMU's processor lacks these: they raise #UD in every tier, and go on at the fix-up.
fixtures avx512
    fault vaddps zmm0, zmm1, zmm2
    fault vmovdqu64 zmm3, [rbx]
    fault vmovdqu8 [rel fixture_memory + 64], zmm4
    fault vpternlogd zmm1, zmm2, zmm3, 0x96
    fault vaddpd zmm1 {k1}{z}, zmm2, [rbx] {1to8}
    fault kmovw k1, eax
    fault vpcompressd [rsi] {k2}, zmm5
end_fixtures

section .rodata
align 4
fixture_word:
    dw 0x27f, 0
fixture_mxcsr:
    dd 0x1fa0

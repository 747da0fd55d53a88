/* encode.h - encode the few instructions that the engine writes itself. Pure.
 *
 * Functions that can fail return 0 or a negative errno. They write a fixed number of bytes,
 * for which there is a constant, such as INSN_JMP32_LEN. The other functions return the
 * number of bytes written.
 */
#pragma once

#include "probes/insn/insn.h"

#define INSN_JMP8_LEN 2
#define INSN_JMP32_LEN 5
#define INSN_JCC32_LEN 6
#define INSN_CALL32_LEN 5
#define INSN_INT3_LEN 1
#define INSN_JMP_PAD_MAX 10 /* prefixes that leave the jump within 15 bytes */
#define INSN_JMP_VARIANTS (22u * 6u)
#define INSN_MOV_IMM_MAX_LEN 10

#define INSN_INC_GS_LEN 9 /* inc of a word that has a fixed distance from GS */

#define INSN_INT3 0xcc

/* insn_encode_jmp32, _jmp8, _call32 - write a relative jump or call to @to.
 * insn_encode_jcc32 - write a conditional jump to @to.
 * @from: the address at which the CPU will execute the instruction
 * @cond: 0..15, as insn->cond
 *
 * Context: any.
 * Return:  0; -ERANGE the displacement does not reach @to; nothing is written.
 */
int insn_encode_jmp32(uint8_t *out, uintptr_t from, uintptr_t to);
int insn_encode_jmp8(uint8_t *out, uintptr_t from, uintptr_t to);
int insn_encode_call32(uint8_t *out, uintptr_t from, uintptr_t to);
int insn_encode_jcc32(uint8_t *out, unsigned cond, uintptr_t from, uintptr_t to);

/* insn_encode_jmp32_head - write the opcode of a jmp32 and @pad prefixes in front that have
 * no effect on it, without its displacement: @pad + 1 bytes.
 * insn_encode_disp32 - write the four bytes of a displacement.
 * @pad:     0..INSN_JMP_PAD_MAX
 * @variant: 0..INSN_JMP_VARIANTS - 1, chooses the prefixes. With @pad of 2 and more each
 *           variant has other bytes; with @pad of 0 and 1 some variants are the same
 *
 * Context: any.
 * Return:  bytes written.
 */
size_t insn_encode_jmp32_head(uint8_t *out, size_t pad, unsigned variant);
size_t insn_encode_disp32(uint8_t *out, uint32_t disp);

/* insn_jmp32_target - the address that the jmp32 at @addr leads to.
 * @bytes: a copy of the bytes at @addr
 *
 * Context: any.
 * Return:  the address; 0: the bytes are no jmp32.
 */
uintptr_t insn_jmp32_target(const uint8_t *bytes, uintptr_t addr);

/* insn_encode_int3s - fill @len bytes with int3. Context: any.  Return: @len. */
size_t insn_encode_int3s(uint8_t *out, size_t len);

/* insn_encode_mov_imm - write a mov of @value to @reg in the shortest form, 5, 6, 7 or 10
 * bytes.
 * @reg: 0..15, enum insn_reg
 *
 * Context: any.
 * Return:  bytes written, at most INSN_MOV_IMM_MAX_LEN.
 */
size_t insn_encode_mov_imm(uint8_t *out, unsigned reg, uint64_t value);

/* insn_encode_push, _pop - write a push or pop of @reg.
 * insn_encode_push_imm - write a push of @value, which the CPU sign-extends to 64 bits.
 * @reg: 0..15, enum insn_reg
 *
 * Context: any.
 * Return:  bytes written, at most 5.
 */
size_t insn_encode_push(uint8_t *out, unsigned reg);
size_t insn_encode_pop(uint8_t *out, unsigned reg);
size_t insn_encode_push_imm(uint8_t *out, int32_t value);

/* insn_encode_flags_save - write code that copies the status flags to ax, and changes no
 * other register.
 * insn_encode_flags_restore - write code that copies the flags back from ax; ax changes.
 * Context: any.  Return: INSN_FLAGS_SAVE_LEN, INSN_FLAGS_RESTORE_LEN.
 */
#define INSN_FLAGS_SAVE_LEN 4
#define INSN_FLAGS_RESTORE_LEN 3
size_t insn_encode_flags_save(uint8_t *out);
size_t insn_encode_flags_restore(uint8_t *out);

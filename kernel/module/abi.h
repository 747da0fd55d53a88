/* abi.h - puts into each module a number that says which headers it was compiled with.
 * The compiler includes this file in front of each module (MODULE_CFLAGS of the
 * Makefile), and abi.py computes the number.
 */
#pragma once

#ifdef SONDE_ABI
static const unsigned long sonde_abi __attribute__((section(".sonde_abi"), used)) =
    SONDE_ABI;
#endif

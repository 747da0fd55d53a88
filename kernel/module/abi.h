/* abi.h - which headers a module was compiled with. The compiler includes this in front of
 * each module (MODULE_CFLAGS of the Makefile), and abi.py gives it the number.
 */
#pragma once

#ifdef SONDE_ABI
static const unsigned long sonde_abi __attribute__((section(".sonde_abi"), used)) =
    SONDE_ABI;
#endif

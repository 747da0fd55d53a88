/* old.c - a module that claims to be compiled with other headers than the kernel: the
 * Makefile gives it another ABI number.
 */
long old_number;

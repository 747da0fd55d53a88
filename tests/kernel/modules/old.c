/* old.c - a module that was compiled with other headers than the kernel: the Makefile has it
 * say so.
 */
long old_number;

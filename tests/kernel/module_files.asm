; module_files.asm - puts the objects of tests/kernel/modules into the image, as files
; that loaded.h can load.

%macro module_file 1-2 ".o"
global module_%1:data (module_%1.end - module_%1)
global module_%1_end
%defstr name %1
%strcat path "tests/kernel/modules/", name, %2
align 16
module_%1:
    incbin path
.end:
module_%1_end:
%endmacro

section .rodata
module_file guest
module_file user
module_file refuses
module_file leaky_mark
module_file leaky_pointer
module_file bad_range
module_file bad_key
module_file plain
module_file marks
module_file acts
module_file leaps, ".asm.o"
module_file watcher
module_file old

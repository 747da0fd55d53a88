; page.asm - fixtures whose instruction crosses or touches the end of a page of text.

%include "tests/conformance/fixture.inc"

section .text.fixtures_page progbits alloc exec nowrite align=4096

; edge group, count, instruction: make a group of one instruction; count of its bytes are
; on the page that ends there.
%macro edge 3+
    times 4096 - (%2 + $ - $$) % 4096 db 0xcc
    fixtures %1
    try %3
    end_fixtures
%endmacro

%undef FIXTURE_CODE
%define FIXTURE_CODE .text.fixtures_page

edge page_end, 11, mov qword [rel fixture_memory + 8], -3
edge page_first_byte, 1, cmp dword [rel fixture_memory + 16], 0x12345678
edge page_middle, 3, call exit_taken

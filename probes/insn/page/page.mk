# page.mk - the decoder and the planner in a browser: build/decode.html, which needs no server.

PAGE_SOURCES := probes/insn/page/decode.c \
    $(addprefix probes/insn/,insn.c insn_kinds.c insn_opcode.c opcode_map.c opcode_group.c \
        opcode_ops.c opcode_set.c mnemonic.c encode.c) \
    $(PUN)
PAGE_LIBC := libc/vsnprintf.c libc/snprintf.c \
    probes/insn/page/memory.c
PAGE_FLAGS := -std=gnu11 -O2 $(WARNINGS) -I.
WASM_FLAGS := --target=wasm32 $(PAGE_FLAGS) -ffreestanding -fno-builtin -nostdlib -nostdinc -Wno-conversion \
    -isystem libc/include -fvisibility=hidden
WASM_EXPORTS := decode decode_input decode_output decode_max

decode-page: $(B)/decode.html ## the decoder and the planner of jumps as a page for a browser
.PHONY: decode-page

$(B)/page/%.o: %.c $(B)/flags.stamp
	$(call say,WASM,$<)
	@mkdir -p $(@D)
	$(Q)clang $(WASM_FLAGS) -isystem $$(clang -print-resource-dir)/include -MMD -MP -c -o $@ $<

$(B)/page/decode.wasm: $(PAGE_SOURCES:%.c=$(B)/page/%.o) $(PAGE_LIBC:%.c=$(B)/page/%.o)
	$(Q)wasm-ld --no-entry --strip-all --gc-sections $(WASM_EXPORTS:%=--export=%) -o $@ $^

PAGE_PARTS := $(addprefix probes/insn/page/,make.py page.html page.js decode.js)
$(B)/decode.html: $(B)/page/decode.wasm $(PAGE_PARTS)
	$(Q)$(PYTHON) probes/insn/page/make.py $< $@

# The same code with addresses of 64 bits.
$(B)/page/native: $(PAGE_SOURCES) probes/insn/page/native.c $(B)/flags.stamp
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(PAGE_FLAGS) -o $@ $(filter %.c,$^)

-include $(PAGE_SOURCES:%.c=$(B)/page/%.d) $(PAGE_LIBC:%.c=$(B)/page/%.d)

# hosted.mk - builds the engine into ordinary processes: one program for each test file
# tests/hosted/test_STEM.c and each variant.

HOSTED_VARIANTS := gcc clang asan tsan
HOSTED_STEMS := $(sort $(patsubst tests/hosted/test_%.c,%,$(wildcard tests/hosted/test_*.c)))

# The port and the fixtures are always compiled without sanitizers.
HOSTED_PORT := $(addprefix tests/hosted/,port_posix.c posix_text.c posix_pads.c \
    posix_symbols.c posix_threads.c posix_trap.c posix_shadow.c posix_tsan.c \
    trampoline.asm jump_leave.asm signal_return.asm) tests/unit/symbol_list.c \
    $(addprefix probes/jump/,detour.asm detour_specialized.asm detour_light.asm detour_return.asm) \
    probes/returns/jprobe_call.asm probes/port/port_detour.c kernel/cpu/fetch.c \
    kernel/mm/extable.c kernel/mm/copy_nofault.asm
HOSTED_FIXTURES := tests/hosted/fixtures.c tests/hosted/fixtures.asm \
    tests/hosted/fixture_call.asm
HOSTED_TRACE := probes/trace/ring/ring.c probes/trace/ring/page.c
HOSTED_REST := $(HOSTED_TRACE) tests/hosted/fixture.c tests/hosted/probe_all.c tests/hosted/poke.c \
    tests/unit/unit.c

# Detours do not save vector registers and do not align the stack. So the C code that
# they call, such as handlers, must not use vector registers.
, := ,
HOSTED_CFLAGS := $(C_COMMON) -O2 -fno-pie -mno-red-zone -fcf-protection=none -pthread \
    -mgeneral-regs-only
# From this address of the text, jumps reach almost 2 GiB of the process in both
# directions, and pointers into the program fit into 31 bits.
HOSTED_LDFLAGS := -no-pie -pthread -T tests/hosted/hosted.ld -Wl,-z,noexecstack \
    -Wl,-Ttext-segment=0x7c000000
# The image of a hit lies on the program's stack, which may have any alignment.
hosted_sanitize_asan := $(SANITIZE) -fno-sanitize=alignment
hosted_sanitize_tsan := -fsanitize=thread --param tsan-distinguish-volatile=1
hosted_port_asan := -DPOSIX_ASAN
hosted_port_tsan := -DPOSIX_TSAN
hosted_ld_asan := $(addprefix -Wl$(,)--wrap=kprobe_,jump_handler image_handler jump_leave \
    post_handler)
hosted_ld_tsan := $(hosted_ld_asan)
hosted_more_asan := tests/hosted/sanitized_calls.asm
hosted_more_tsan := $(hosted_more_asan)

hosted_objs = $(patsubst %,$(B)/hosted/$(1)/%.o,$(2)) # variant, sources

define hosted_variant
hosted_cc_$(1) := $(if $(filter clang,$(1)),clang,$(HOSTCC))
$(call hosted_objs,$(1),$(HOSTED_PORT) $(HOSTED_FIXTURES)): private hosted_sanitize_$(1) :=
$(call hosted_objs,$(1),$(HOSTED_PORT)): private HOSTED_CFLAGS += $(hosted_port_$(1))
$(call hosted_objs,$(1),$(HOSTED_FIXTURES)): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))
$(B)/hosted/$(1)/%.c.o: %.c $(B)/hosted.stamp
	$$(call say,HOSTCC,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(hosted_cc_$(1)) $$(HOSTED_CFLAGS) $$(hosted_sanitize_$(1)) -MMD -MP -c \
	    -o $$@ $$<
$(B)/hosted/$(1)/%.asm.o: %.asm $(B)/hosted.stamp | $(B)/asm_offsets.inc \
    $(B)/probe_offsets.inc
	@mkdir -p $$(@D)
	$$(Q)$$(NASM) $$(NASMFLAGS) -DHOSTED -M -MP -MT $$@ $$< >$$(@:.o=.d)
	$$(Q)$$(NASM) $$(NASMFLAGS) -DHOSTED -o $$@ $$<
$(B)/hosted/$(1)/test_%: $(call hosted_objs,$(1),tests/hosted/test_%.c $(ENGINE) \
    $(HOSTED_PORT) $(hosted_more_$(1)) $(HOSTED_FIXTURES) $(HOSTED_REST)) tests/hosted/hosted.ld
	$$(call say,HOSTLD,$$@)
	$$(Q)$$(hosted_cc_$(1)) $$(HOSTED_LDFLAGS) $$(hosted_sanitize_$(1)) \
	    $$(hosted_ld_$(1)) -o $$@ $$(filter %.o,$$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,$(1),$(ENGINE) $(HOSTED_PORT) \
    $(HOSTED_FIXTURES) $(HOSTED_REST) $(HOSTED_STEMS:%=tests/hosted/test_%.c)))
endef
$(foreach variant,$(HOSTED_VARIANTS),$(eval $(call hosted_variant,$(variant))))

BENCH_NATIVE := tests/hosted/bench_native.c tests/hosted/bench_targets.asm \
    probes/bench/crowd.asm probes/bench/bench_condition.c tests/hosted/fixture.c $(HOSTED_TRACE)
$(call hosted_objs,gcc,probes/bench/bench_condition.c): private HOSTED_CFLAGS += -DMARKER_CODE
$(call hosted_objs,gcc,tests/hosted/bench_native.c): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))
$(B)/hosted/gcc/bench_native: $(call hosted_objs,gcc,$(BENCH_NATIVE) $(ENGINE) \
    $(HOSTED_PORT) $(HOSTED_FIXTURES)) tests/hosted/hosted.ld
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOSTED_LDFLAGS) -o $@ $(filter %.o,$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,gcc,$(BENCH_NATIVE)))

PROGRAM_WAYS := tests/hosted/program_ways.c tests/hosted/program_places.asm \
    tests/hosted/fixture.c $(HOSTED_TRACE)
$(B)/hosted/gcc/program_ways: $(call hosted_objs,gcc,$(PROGRAM_WAYS) $(ENGINE) \
    $(HOSTED_PORT) $(HOSTED_FIXTURES)) tests/hosted/hosted.ld
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOSTED_LDFLAGS) -o $@ $(filter %.o,$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,gcc,$(PROGRAM_WAYS)))

BENCH_PEER := tests/hosted/bench_peer.c tests/hosted/bench_targets.asm
$(B)/hosted/gcc/bench_peer: $(call hosted_objs,gcc,$(BENCH_PEER))
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) -no-pie -Wl,-z,noexecstack -o $@ $^
-include $(patsubst %.o,%.d,$(call hosted_objs,gcc,$(BENCH_PEER)))
$(call hosted_objs,gcc,tests/hosted/bench_peer.c): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))

bench-native: $(B)/hosted/gcc/bench_native $(B)/hosted/gcc/bench_peer ## what jumps cost on this processor, beside gdbserver and uftrace
	$(Q)kernel/host/need.sh gdb peer
	$(Q)tests/hosted/bench_peers.py $^

$(B)/hosted.stamp: FORCE
	@$(call stamp_if_changed,'$(HOSTCC) $(HOSTED_CFLAGS) $(hosted_sanitize_asan)' \
	    '$(NASM) $(NASMFLAGS)')

hosted_chosen := $(foreach variant,$(HOSTED_VARIANTS), \
    $(patsubst %,$(B)/hosted/$(variant)/test_%,$(or $(T),$(HOSTED_STEMS))))
hosted: $(hosted_chosen) ## the engine in a process; T=STEM for one, LONG=1
	$(Q)$(if $(LONG),LONG=1) PYTHONPATH=kernel/host:tests/run prove --exec '' $^ \
	    $(if $(T),,tests/hosted/test_gdb.py)

.PHONY: hosted bench-native

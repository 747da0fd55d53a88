# Makefile - builds the kernel, its boot image and the host tests.
#
#   make help      lists the targets
#   make V=1       shows the commands
#   make B=dir     builds somewhere else than in build/
#   make EXTRA_OBJS="a.o b.o"   links further objects into the kernel
#
#   CROSS_COMPILE=x86_64-elf-    another gcc      EXTRA_OBJS="a.o b.o"    linked in too
#   CC=clang                     or clang

B ?= build
CROSS_COMPILE ?= x86_64-linux-gnu-
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin LD),default)
LD := $(CROSS_COMPILE)ld
endif
NM := $(CROSS_COMPILE)nm
OBJCOPY := $(CROSS_COMPILE)objcopy
OBJDUMP := $(CROSS_COMPILE)objdump
NASM ?= nasm
HOSTCC ?= gcc
HOSTAR ?= ar
PYTHON ?= python3
GRUB_MKRESCUE ?= grub-mkrescue

Q := $(if $(filter 1,$(V)),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(filter 1,$(V))$(silent),true,printf '  %-7s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE

# ---- sources ---------------------------------------------------------------------------

KERNEL := \
    kernel/main.c

# Each folder lists its own, in the order in which they are best read.
include $(addsuffix /sources.mk,boot drivers libc \
    $(addprefix kernel/,cpu mm sync thread time fs debug console work) \
    $(addprefix probes/,insn core jump region returns xmc explain port console bench) \
    $(addprefix tests/,kernel conformance bench stress truth))

# The engine as it also runs on the host.
ENGINE := $(filter %.c,$(INSN) $(CORE) $(JUMP) $(REGION) $(RETURNS) $(XMC) $(EXPLAIN))

SOURCES := $(KERNEL) $(CPU) $(MM) $(SYNC) $(THREAD) $(TIME) $(FS) $(DEBUG) $(CONSOLE) $(WORK) \
    $(CORE) $(JUMP) $(REGION) $(RETURNS) $(XMC) $(EXPLAIN) $(INSN) $(PORT) $(PROBE_CONSOLE) \
    $(PROBE_BENCH) $(DRIVERS) $(LIBC) $(BOOT) \
    $(KTESTS) $(CONFORMANCE) $(BENCH) $(STRESS) $(TRUTH)
OBJS := $(SOURCES:%=$(B)/%.o)

# What each host test needs besides itself.
engine_on_arrays := $(ENGINE) tests/unit/port_fake.c \
    tests/unit/port_fake_pads.c tests/unit/fake_shadow.c
$(foreach stem,aggr boundary check counter detour detour_own emulate enable explain fault handler hit insn_slot \
    jprobe jump kretprobe link liveness optimize pad recover region \
    register registry return_point set \
    state step targets text_history text_poke xmc,$(eval unit_$(stem) := $(engine_on_arrays)))
$(foreach stem,insn relocate encode effects operand,$(eval unit_$(stem) := $(INSN)))
PUN := $(filter probes/jump/pun%,$(JUMP))
unit_pun := $(PUN) $(INSN)
unit_reject := probes/core/reject.c
unit_boot_info := boot/boot_info.c boot/boot_map.c boot/boot_option.c
unit_ctype := libc/ctype.c
unit_err := libc/err.c
unit_extable := kernel/mm/extable.c
unit_free_set := kernel/mm/free_set.c
unit_glob := libc/glob.c
unit_heap_core := kernel/mm/heap_core.c
unit_inlines := kernel/debug/inlines.c
unit_ksyms := kernel/debug/ksyms.c
unit_qsort := libc/qsort.c
unit_seq := kernel/fs/seq.c tests/unit/fake_kernel.c
unit_shell := $(filter-out %/shell_system.c,$(filter kernel/console/%,$(CONSOLE))) \
    $(filter kernel/fs/vfs%,$(FS)) kernel/fs/seq.c libc/err.c \
    tests/unit/fake_kernel.c
unit_shell_line := kernel/console/shell_line.c kernel/console/shell_history.c $(unit_seq)
unit_shell_machine := kernel/console/shell_machine.c libc/err.c $(unit_seq)
unit_shell_parse := kernel/console/shell_parse.c
unit_shell_text := kernel/console/shell_text.c $(unit_seq)
unit_string := libc/string.c
unit_strtol := libc/strtol.c libc/ctype.c
unit_vfs := kernel/fs/vfs.c kernel/fs/vfs_node.c kernel/fs/vfs_tree.c kernel/fs/seq.c \
    tests/unit/fake_kernel.c
unit_vsnprintf := libc/vsnprintf.c libc/snprintf.c libc/strtol.c libc/ctype.c libc/string.c

UNIT_STEMS := $(sort $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c)))

# ---- flags -----------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wconversion -Werror
C_COMMON := -std=gnu11 -g -gdwarf-4 -fno-omit-frame-pointer $(WARNINGS) -I.

CFLAGS := $(C_COMMON) -O2 -ffreestanding -fno-pic -fno-pie -fno-stack-protector \
    -fno-asynchronous-unwind-tables -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -fcf-protection=none -fpatchable-function-entry=5 -nostdinc -isystem libc/include
ifneq (,$(findstring clang,$(CC)))
CFLAGS += --target=x86_64-elf -isystem $(shell $(CC) -print-resource-dir)/include
ASM_OFFSETS_FLAGS := -fno-integrated-as
else
CFLAGS += -fno-ipa-ra -fno-ipa-sra -fno-ipa-cp \
    -isystem $(shell $(CC) -print-file-name=include)
endif

NASMFLAGS := -f elf64 -g -F dwarf -Werror -w-reloc-abs-qword -w-reloc-abs-dword -I./ -I$(B)/

LDFLAGS := -nostdlib -no-pie --build-id --orphan-handling=error -z max-page-size=4096 \
    -z noexecstack -T linker.ld

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
HOST_CFLAGS := $(C_COMMON) -O1 $(SANITIZE)

# Further objects to link in: make EXTRA_OBJS="a.o b.o"; see docs/api.md. What ./sonde brings
# up to date before it boots keeps those that were given last.
ifeq ($(KEEP_OBJS) $(origin EXTRA_OBJS),1 undefined)
EXTRA_OBJS := $(wildcard $(shell sed -n 3p $(B)/link.stamp 2>/dev/null))
endif

# A change of flags, tools or lists rebuilds what it concerns.
stamp_if_changed = mkdir -p $(@D); printf '%s\n' $(1) | cmp -s - $@ || \
    printf '%s\n' $(1) >$@

$(B)/flags.stamp: FORCE
	@$(call stamp_if_changed,'$(CC) $(CFLAGS)' '$(NASM) $(NASMFLAGS)' \
	    '$(HOSTCC) $(HOST_CFLAGS)' '$(shell $(CC) --version | head -n 1)')

$(B)/link.stamp: FORCE
	@$(call stamp_if_changed,'$(LD) $(LDFLAGS)' '$(OBJS)' '$(EXTRA_OBJS)')

# ---- the kernel ------------------------------------------------------------------------

all: $(B)/sonde.elf $(B)/sonde.iso $(B)/sonde.lst $(B)/sonde.sym compile_commands.json ## the kernel and its boot image (the default)

$(B)/%.c.o: %.c $(B)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# One file has the optimizations that make special copies of functions: so that there are
# symbols like weigh.constprop.0, as in other kernels.
$(B)/kernel/work/work_special.c.o: CFLAGS := $(filter-out -fno-ipa-%,$(CFLAGS))

OFFSETS := kernel/cpu/asm_offsets.c probes/port/probe_offsets.c
NASM_TOOLS := kernel/debug/nasm_dwarf.py kernel/debug/elf64.py

# Two runs: NASM 2.16 forgets the included files in the list that it makes while assembling.
$(B)/%.asm.o: %.asm $(NASM_TOOLS) $(B)/flags.stamp | $(B)/asm_offsets.inc $(B)/probe_offsets.inc
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(NASMFLAGS) -M -MP -MT $@ $< >$(@:.o=.d)
	$(Q)$(NASM) $(NASMFLAGS) -o $@ $<
	$(Q)$(PYTHON) kernel/debug/nasm_dwarf.py $@

# C layouts for NASM: compiled to assembly, of which only the marked comments count.
define offsets
$(B)/$(notdir $(1:.c=.inc)): $(1) $(B)/flags.stamp
	$$(call say,GEN,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(ASM_OFFSETS_FLAGS) -MMD -MP -MT $$@ -MF $$(@:.inc=.d) -S \
	    -o $$(@:.inc=.s) $$<
	$$(Q)sed -n 's/^[[:space:]]*#define \([A-Z0-9_]*\) \$$$$/%define \1 /p' $$(@:.inc=.s) >$$@
endef
$(foreach file,$(OFFSETS),$(eval $(call offsets,$(file))))

-include $(OBJS:.o=.d) $(B)/asm_offsets.d $(B)/probe_offsets.d

# Linked three times, because the symbol table is a part of what it describes; see
# kernel/debug/gen_ksyms.py. In each image the entry NOPs become one before anything is
# read from it. The tables of inlined functions and of branch targets are made of the first,
# the only one of the two that needs debug data and relocations.
KSYMS_TOOLS := kernel/debug/gen_ksyms.py kernel/debug/elf64.py
INLINES_TOOLS := kernel/debug/gen_inlines.py kernel/debug/elf64.py
TARGETS_TOOLS := probes/region/gen_targets.py kernel/debug/gen_ksyms.py kernel/debug/elf64.py \
    $(B)/link/gen_branches
LINK_TOOLS := kernel/debug/entry_nops.py kernel/debug/elf64.py
image_link = $(LD) $(LDFLAGS) $(1) -o $@ $(OBJS) $(EXTRA_OBJS) $(2) && \
    $(PYTHON) kernel/debug/entry_nops.py $@ $(if $(filter 1,$(V)),,>/dev/null)
LINK_NEEDS := $(OBJS) $(EXTRA_OBJS) linker.ld $(LINK_TOOLS) $(B)/link.stamp

$(B)/link/ksyms0.asm: $(KSYMS_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py --empty -o $@

$(B)/link/ksyms%.asm: $(B)/link/%.elf $(KSYMS_TOOLS)
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py -o $@ $<

$(B)/link/inlines0.asm: $(INLINES_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) kernel/debug/gen_inlines.py --empty -o $@

$(B)/link/inlines1.asm: $(B)/link/1.elf $(INLINES_TOOLS)
	$(Q)$(PYTHON) kernel/debug/gen_inlines.py -o $@ $<

$(B)/link/targets0.asm: $(TARGETS_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) probes/region/gen_targets.py --empty -o $@

targets_make = $(PYTHON) probes/region/gen_targets.py --branches $(B)/link/gen_branches $(1)
$(B)/link/targets1.asm: $(B)/link/1.elf $(TARGETS_TOOLS)
	$(Q)$(call targets_make,-o $@ $<)

$(B)/link/gen_branches: $(B)/libinsn/probes/region/gen_branches.o $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^

$(B)/link/%.o: $(B)/link/%.asm $(B)/flags.stamp
	$(Q)$(NASM) -f elf64 -o $@ $<

link_tables = $(1:%=$(B)/link/%.o)
LINK1_TABLES := $(call link_tables,ksyms0 inlines0 targets0)
LINK2_TABLES := $(call link_tables,ksyms1 inlines1 targets1)
LINK3_TABLES := $(call link_tables,ksyms2 inlines1 targets1)

$(B)/link/1.elf: $(LINK1_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--emit-relocs,$(LINK1_TABLES))

$(B)/link/2.elf: $(LINK2_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--strip-debug,$(LINK2_TABLES))

$(B)/sonde.elf: $(LINK3_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--emit-relocs -Map=$(B)/sonde.map,$(LINK3_TABLES))
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py $@ | cmp - $(B)/link/ksyms2.asm
	$(Q)$(call targets_make,$@) | cmp - $(B)/link/targets1.asm

$(B)/sonde.map: $(B)/sonde.elf

$(B)/sonde.lst: $(B)/sonde.elf
	$(call say,LST,$@)
	$(Q)$(OBJDUMP) -d --no-show-raw-insn $< >$@

$(B)/sonde.sym: $(B)/sonde.elf
	$(call say,SYM,$@)
	$(Q)$(NM) -n $< >$@

# GRUB reads every section of what it boots: no debug data, no relocations.
$(B)/sonde.stripped: $(B)/sonde.elf
	$(Q)$(OBJCOPY) --strip-all $< $@

# Boots under BIOS and, where grub-efi-amd64-bin is installed, under UEFI.
$(B)/platforms.stamp: FORCE
	@$(call stamp_if_changed,'$(wildcard /usr/lib/grub/*/moddep.lst)')

$(B)/sonde.iso: $(B)/sonde.stripped iso/grub.cfg $(B)/platforms.stamp
	$(call say,ISO,$@)
	@rm -rf $(B)/iso && mkdir -p $(B)/iso/boot/grub
	$(Q)cp $(B)/sonde.stripped $(B)/iso/boot/sonde.elf
	$(Q)cp iso/grub.cfg $(B)/iso/boot/grub/grub.cfg
	$(Q)$(GRUB_MKRESCUE) $(GRUB_FLAGS) -o $@ $(B)/iso >$(B)/iso.log 2>&1 || \
	    { cat $(B)/iso.log; exit 1; }

# Only what booting needs. GRUB's own start-up asks for every kind of partition table.
GRUB_FLAGS := --locales= --fonts= --themes= --install-modules="multiboot2 normal serial \
    terminal iso9660 part_acorn part_amiga part_apple part_bsd part_dfly part_dvh \
    part_gpt part_msdos part_plan part_sun part_sunpc"

compile_commands.json: $(B)/flags.stamp $(B)/link.stamp
	@{ printf '['; sep=; for f in $(filter %.c,$(SOURCES)); do \
	    printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$sep" \
	    '$(CURDIR)' "$$f" '$(CC) $(CFLAGS)' "$$f"; sep=,; \
	done; printf '\n]\n'; } >$@

# ---- running and testing ---------------------------------------------------------------

run: ## boot it, console on this terminal; installs what is missing
	$(Q)tests/run/need.sh run
	$(Q)./sonde run

gdb: ## boot it stopped at its first instruction, gdb attached
	$(Q)tests/run/need.sh run gdb
	$(Q)./sonde gdb

test: ## everything that should pass before a commit, or T=NAME; installs what is missing
	$(Q)tests/run/need.sh run uefi gdb test
	$(Q)./sonde test $(T)

test-long: ## the same, with more seeds, more CPUs and more time
	$(Q)tests/run/need.sh run uefi gdb test
	$(Q)./sonde test --long

STRESS_OPTIONS := MINUTES SEED CPUS ROUND CLASSES STEPPED
stress: $(B)/sonde.elf ## handlers that misbehave at random: MINUTES=60 SEED=1 CPUS=1,2,4,8
	$(Q)tests/run/need.sh run
	$(Q)$(PYTHON) tests/stress/stress.py $(foreach option,$(STRESS_OPTIONS),$(if \
	    $($(option)),--$(shell echo $(option) | tr A-Z a-z) $($(option))))

test-fresh: ## `make run` and `make test` in a Debian that has only git, make and gcc
	$(Q)tests/run/fresh.sh

# Host objects are under sanitizers. Our C library gets names of its own there: the host's
# stands beside it.
$(B)/host/libc/%.o: private HOST_CFLAGS += -include tests/unit/libc_rename.h
$(B)/host/%.o: %.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOST_CFLAGS) -MMD -MP -c -o $@ $<

# One program per tests/unit/test_STEM.c.
define unit_program
unit_objs_$(1) := $(patsubst %.c,$(B)/host/%.o,tests/unit/test_$(1).c tests/unit/unit.c \
    $(unit_$(1)))
$(B)/unit/test_$(1): $$(unit_objs_$(1)) $(B)/unit.stamp
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) $$(SANITIZE) -o $$@ $$(unit_objs_$(1))
UNIT_OBJS += $$(unit_objs_$(1))
endef
UNIT_OBJS :=
$(foreach stem,$(UNIT_STEMS),$(eval $(call unit_program,$(stem))))
-include $(sort $(UNIT_OBJS:.o=.d))

# A plugin for QEMU, which counts what the guest executes.
$(B)/truth/exec_count.so: tests/truth/exec_count.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -fPIC -fvisibility=hidden -shared -o $@ $<

$(B)/unit.stamp: FORCE
	@$(call stamp_if_changed,$(foreach stem,$(UNIT_STEMS),'$(stem): $(unit_$(stem))'))

T ?=
unit: $(patsubst %,$(B)/unit/test_%,$(or $(T),$(UNIT_STEMS))) ## host tests; T=STEM for one
	$(Q)prove --exec '' $^

# The engine in a process: one program per tests/hosted/test_STEM.c and variant. The port and
# the fixtures are never under sanitizers.
HOSTED_VARIANTS := gcc clang asan tsan
HOSTED_STEMS := $(sort $(patsubst tests/hosted/test_%.c,%,$(wildcard tests/hosted/test_*.c)))
HOSTED_ENGINE := $(ENGINE)
HOSTED_PORT := tests/hosted/port_posix.c tests/hosted/posix_text.c \
    tests/hosted/posix_pads.c tests/hosted/posix_symbols.c tests/hosted/posix_threads.c tests/hosted/posix_trap.c \
    tests/hosted/posix_shadow.c tests/hosted/trampoline.asm tests/hosted/posix_tsan.c \
    tests/hosted/jump_leave.asm probes/returns/jprobe_call.asm probes/port/port_detour.c \
    probes/jump/detour.asm probes/jump/detour_own.asm \
    probes/jump/detour_light.asm probes/jump/detour_return.asm \
    tests/hosted/signal_return.asm kernel/mm/extable.c kernel/mm/copy_nofault.asm
HOSTED_FIXTURES := tests/hosted/fixtures.c tests/hosted/fixtures.asm \
    tests/hosted/fixture_call.asm
HOSTED_REST := tests/hosted/fixture.c tests/hosted/probe_all.c tests/hosted/poke.c \
    tests/unit/unit.c

# Handlers that a jump has brought find the program's vector registers, and its stack as it
# is aligned just then.
, := ,
HOSTED_CFLAGS := $(C_COMMON) -O2 -fno-pie -mno-red-zone -fcf-protection=none -pthread \
    -mgeneral-regs-only
# In the middle of what a jump reaches from there, and pointers to it fit 31 bits.
HOSTED_LDFLAGS := -no-pie -pthread -T tests/hosted/hosted.ld -Wl,-z,noexecstack \
    -Wl,-Ttext-segment=0x7c000000
# The image of a hit lies on a stack that need not even be aligned to words.
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
	$$(Q)$$(NASM) $$(NASMFLAGS) -DHOSTED -MD $$(@:.o=.d) -MP -MT $$@ -o $$@ $$<
$(B)/hosted/$(1)/test_%: $(call hosted_objs,$(1),tests/hosted/test_%.c $(HOSTED_ENGINE) \
    $(HOSTED_PORT) $(hosted_more_$(1)) $(HOSTED_FIXTURES) $(HOSTED_REST)) tests/hosted/hosted.ld
	$$(call say,HOSTLD,$$@)
	$$(Q)$$(hosted_cc_$(1)) $$(HOSTED_LDFLAGS) $$(hosted_sanitize_$(1)) $$(hosted_ld_$(1)) -o $$@ \
	    $$(filter %.o,$$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,$(1),$(HOSTED_ENGINE) $(HOSTED_PORT) \
    $(HOSTED_FIXTURES) $(HOSTED_REST) $(HOSTED_STEMS:%=tests/hosted/test_%.c)))
endef
$(foreach variant,$(HOSTED_VARIANTS),$(eval $(call hosted_variant,$(variant))))

BENCH_NATIVE := tests/hosted/bench_native.c tests/hosted/bench_targets.asm \
    tests/hosted/fixture.c
$(call hosted_objs,gcc,tests/hosted/bench_native.c): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))
$(B)/hosted/gcc/bench_native: $(call hosted_objs,gcc,$(BENCH_NATIVE) $(HOSTED_ENGINE) \
    $(HOSTED_PORT) $(HOSTED_FIXTURES)) tests/hosted/hosted.ld
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOSTED_LDFLAGS) -o $@ $(filter %.o,$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,gcc,$(BENCH_NATIVE)))

bench-native: $(B)/hosted/gcc/bench_native ## what jumps cost on this processor
	$(Q)$<

$(B)/hosted.stamp: FORCE
	@$(call stamp_if_changed,'$(HOSTCC) $(HOSTED_CFLAGS) $(hosted_sanitize_asan)' '$(NASM) $(NASMFLAGS)')

hosted: $(foreach variant,$(HOSTED_VARIANTS),$(patsubst %,$(B)/hosted/$(variant)/test_%,$(or $(T),$(HOSTED_STEMS)))) ## the engine in a process; T=STEM for one, LONG=1
	$(Q)$(if $(LONG),LONG=1) PYTHONPATH=tests/run prove --exec '' $^ \
	    $(if $(T),,tests/hosted/test_gdb.py)

ktest: ## tests in the guest; T=STEM for one subject, on SMP=N CPUs
	$(Q)tests/run/need.sh run test
	$(Q)SMP=$(or $(SMP),2) ./sonde test $(if $(T),kernel/$(T),kernel)

# The same kernel with a large text that nobody calls, for probes by the 100,000.
BENCH_PLACES := 130000
$(B)/bench/text.asm: $(B)/sonde.elf tests/bench/gen_text.py kernel/debug/elf64.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tests/bench/gen_text.py -o $@ --at-least $(BENCH_PLACES) $<

$(B)/bench/text.o: $(B)/bench/text.asm
	$(call say,NASM,$<)
	$(Q)$(NASM) -f elf64 -I./ -o $@ $<

bench: $(B)/bench/text.o ## what hits, registering and memory cost; PEER=dir: others beside
	$(Q)tests/run/need.sh run
	$(Q)env -u MAKEFLAGS -u MAKEOVERRIDES CC='$(CC)' B=$(B)/bench \
	    EXTRA_OBJS=$(abspath $<) PEER='$(PEER)' tests/bench/run.sh

fuzz: ## the fuzzers, a minute each
	$(Q)tests/run/need.sh run test
	$(Q)./sonde test --long fuzz

M ?=
mutants: ## undo what the code does, piece by piece: do tests notice? M=NAME for some
	$(Q)tests/run/need.sh run test
	$(Q)tests/mutants/run.py --folder $(B)/mutants $(M)

check: $(B)/sonde.elf ## layers, headers, stems, format, lists; what clang and shellcheck say
	$(Q)prove --exec '' --comments -j 2 $(wildcard tests/lint/check_*)

format: ## let clang-format have its way
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

# ---- looking at it ---------------------------------------------------------------------

FN ?= kmain
disas: $(B)/sonde.elf ## one function with its source: FN=name
	$(Q)$(OBJDUMP) -S --disassemble=$(FN) $<

# Without sanitizers, so that anyone can link it.
INSN_HOST := $(INSN:%.c=$(B)/libinsn/%.o)
$(B)/libinsn/%.o: %.c $(B)/flags.stamp
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -MMD -MP -c -o $@ $<
-include $(INSN_HOST:.o=.d) $(B)/libinsn/probes/region/gen_branches.d

$(B)/host/libinsn.a: $(INSN_HOST)
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(HOSTAR) rcs $@ $^

# The decoder beside Zydis and objdump. Optimised: it sees millions of instructions.
INSN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/insn/*.c))
$(B)/insn/check_zydis: $(INSN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^ -lZydis
-include $(INSN_CHECK:.o=.d)

# The planner of jumps, at every instruction of real programs.
PUN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/pun/*.c) $(PUN) \
    $(filter probes/jump/pad%,$(JUMP)))
$(B)/pun/check_pun: $(PUN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(PUN_CHECK:.o=.d)

# The rules of regions, at every instruction of the kernel's file.
REGION_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,tests/region/check_region.c \
    tests/region/port_elf.c probes/region/region.c probes/region/region_copy.c probes/core/check.c \
    probes/core/blacklist.c probes/core/boundary.c probes/core/emulate.c probes/core/recover.c probes/core/reject.c \
    probes/region/targets.c)
$(B)/region/check_region: $(REGION_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(REGION_CHECK:.o=.d)

# The decoder under libFuzzer, which only clang has.
$(B)/fuzz/fuzz_insn: tests/fuzz/fuzz_insn.c $(INSN) $(wildcard probes/insn/*.h) \
    $(B)/flags.stamp
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)clang $(C_COMMON) -O1 $(SANITIZE) -fsanitize=fuzzer -o $@ $(filter %.c,$^)

host-insn: $(B)/host/libinsn.a ## the instruction decoder as a host library

hooks: ## install the pre-commit hook: format of changed files
	$(Q)install -m 755 tests/lint/pre-commit "$$(git rev-parse --git-path hooks)/pre-commit"

clean: ## remove all that was built
	$(Q)rm -rf $(B) compile_commands.json

# For scripts: what a variable of this file is.
print-%:
	@echo '$($*)'

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | sort | expand -t 14

.PHONY: all run gdb test test-long test-fresh unit hosted ktest bench bench-native fuzz stress mutants check format disas \
    host-insn hooks clean help

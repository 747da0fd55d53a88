# Makefile - builds the kernel, its boot image and the host tests.
#
#   make help      lists the targets
#   make V=1       shows the commands
#   make B=dir     builds in dir and not in build/
#   make CHECK=contracts   builds in build/contracts: functions check their contract blocks
#   make EXTRA_OBJS="a.o b.o"   links further objects into the kernel
#
#   CROSS_COMPILE=x86_64-elf-    another gcc      EXTRA_OBJS="a.o b.o"    linked in too
#   CC=clang                     or clang

# A build folder must always be spelled the same way: files of dependencies have the names
# that their build has used.
ifneq ($(words $(CURDIR))$(findstring :,$(CURDIR)),1)
$(error The path of this folder has a blank or a colon, which make cannot have in names: $(CURDIR))
endif
override B := $(or $(B),build$(CHECK:%=/%))
ifneq ($(words $(B))$(findstring :,$(B)),1)
$(error The name of the build folder has a blank or a colon, which make cannot have in names: B=$(B))
endif
override B := $(patsubst $(CURDIR)/%,%,$(abspath $(B)))
export B
# `make clean` removes the whole folder. So it is one that a build has made: that has stamps, or
# nothing but what ./sonde writes without a build.
ifeq ($(filter build build/%,$(B))$(wildcard $(B)/*.stamp $(B)/../*.stamp),)
ifneq ($(if $(wildcard $(B)/.),$(filter-out %/labs %/film.html,$(wildcard $(B)/*)),$(wildcard $(B))),)
$(error B=$(B) is there and is no build folder; name one that is empty, or not there yet)
endif
endif
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
# Where python3 is a program that chooses among several Pythons, it chooses once. Without
# site-packages Python starts sooner.
TOOL_PYTHON := $(or $(shell $(PYTHON) -S -c 'import sys; print(sys.executable)' 2>/dev/null),$(PYTHON)) -S
GRUB_MKRESCUE ?= grub-mkrescue

Q := $(if $(filter 1,$(V)),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(filter 1,$(V))$(silent),true,printf '  %-7s %s\n' $(1) $(2))

# Switch off make's built-in rules: make would try each of them for every file.
MAKEFLAGS += -r

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE

# ---- sources ---------------------------------------------------------------------------

KERNEL := \
    kernel/main.c

# Each folder lists its own sources, in an order that is good for reading them.
include $(addsuffix /sources.mk,boot drivers libc \
    $(addprefix kernel/,cpu mm sync thread time fs debug module console work) \
    $(addprefix probes/,insn core program jump region returns text xmc explain agent watch trace port gdb \
        many marker console bench film))

PUN := $(filter probes/jump/pun%,$(JUMP))

# The part of the engine that also runs on the host.
ENGINE := $(filter %.c,$(INSN) $(CORE) $(PROGRAM) $(JUMP) $(REGION) $(RETURNS) $(TEXT_ROOM) $(XMC) \
    $(EXPLAIN))

SOURCES := $(KERNEL) $(CPU) $(MM) $(SYNC) $(THREAD) $(TIME) $(FS) $(DEBUG) $(MODULE) $(CONSOLE) \
    $(WORK) $(CORE) $(PROGRAM) $(JUMP) $(REGION) $(RETURNS) $(TEXT_ROOM) $(XMC) $(EXPLAIN) $(INSN) \
    $(AGENT) $(WATCH) $(TRACE) $(PORT) $(GDB) \
    $(MANY) $(MARKER) $(PROBE_CONSOLE) $(PROBE_BENCH) $(FILM) $(DRIVERS) $(LIBC) $(BOOT)

# What users have: the image, and the module of bench.
PRODUCT = $(SOURCES) $(BENCH_MODULE)

OBJS = $(SOURCES:%=$(B)/%.o)
IMAGE_OBJS = $(OBJS) $(EXTRA_OBJS)

# ---- flags -----------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wconversion -Werror
C_COMMON := -std=gnu11 -g -gdwarf-4 -fno-omit-frame-pointer $(WARNINGS) -I.

CFLAGS := $(C_COMMON) -O2 -ffreestanding -fno-pic -fno-pie -fno-stack-protector \
    -fno-asynchronous-unwind-tables -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -mskip-rax-setup -fcf-protection=none -fpatchable-function-entry=5 -nostdinc -isystem libc/include
ifneq (,$(findstring clang,$(CC)))
CFLAGS += --target=x86_64-elf -isystem $(shell $(CC) -print-resource-dir)/include
ASM_OFFSETS_FLAGS := -fno-integrated-as
FOR_SIZE := -Os
else
CFLAGS += -fno-ipa-ra -fno-ipa-sra -fno-ipa-cp -fno-align-jumps -fno-align-loops \
    -isystem $(shell $(CC) -print-file-name=include)
FOR_SIZE := -Os -finline-functions --param max-inline-insns-size=12 -fno-partial-inlining \
    -fno-shrink-wrap
endif
FOR_SIZE += -fmerge-all-constants

NASMFLAGS := -f elf64 -g -F dwarf -Werror -w-reloc-abs-qword -w-reloc-abs-dword -I./ -I$(B)/

LDFLAGS := -nostdlib -no-pie --build-id --orphan-handling=error -z max-page-size=4096 \
    -z noexecstack -T linker.ld

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
HOST_CFLAGS := $(C_COMMON) -O1 $(SANITIZE)

# More objects to link into the kernel: make EXTRA_OBJS="a.o b.o"; see docs/api.md.
# When ./sonde brings the kernel up to date before it boots, it keeps the objects of
# the last make.
ifeq ($(KEEP_OBJS) $(origin EXTRA_OBJS),1 undefined)
EXTRA_OBJS := $(wildcard $(shell sed -n 3p $(B)/link.stamp 2>/dev/null))
endif

# A stamp file changes when flags, tools or lists change. Then its dependents are rebuilt.
stamp_if_changed = mkdir -p $(@D); printf '%s\n' $(1) | cmp -s - $@ || \
    printf '%s\n' $(1) >$@

$(B)/flags.stamp: FORCE
	@$(call stamp_if_changed,'$(CC) $(CFLAGS)' '$(FOR_SIZE)' '$(FOR_SPEED)' \
	    '$(NASM) $(NASMFLAGS:-I$(B)/=)' '$(HOSTCC) $(HOST_CFLAGS)' '$(shell $(CC) --version | head -n 1)')

# A module has a checksum of the headers that it was compiled with; the kernel
# has its own.
MODULE_CFLAGS = $(CFLAGS) -g0 $(MODULE_ABI)
MODULE_ABI := $(shell $(TOOL_PYTHON) kernel/module/abi.py)
$(B)/modules.stamp: FORCE
	@$(call stamp_if_changed,'$(MODULE_ABI)')

include kernel/image.mk
# What only tests build. A tree without tests/ builds the kernel all the same.
-include tests/tests.mk

# ---- the kernel ------------------------------------------------------------------------

all: $(B)/sonde.elf $(B)/sonde.checked $(B)/sonde.iso $(B)/sonde.lst $(B)/sonde.sym samples compile_commands.json ## the kernel and its boot image (the default)

$(B)/%.c.o: %.c $(B)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MD -MP -c -o $@ $<

# Files that hits run through are compiled for speed, and all others for size. A hit runs
# through each file that has a function marked NOKPROBE, and through these.
FOR_SPEED := $(shell grep -l '^NOKPROBE[^_]' $(filter %.c,$(SOURCES))) \
    probes/core/fault.c probes/jump/program_join.c \
    $(addprefix probes/returns/,entry.c holder.c return_point.c jprobe.c) \
    $(filter probes/program/op_%,$(PROGRAM)) $(addprefix probes/program/program_,parts.c run.c) \
    $(addprefix probes/insn/,insn.c insn_opcode.c) $(addprefix probes/port/port_,held.c shadow.c) \
    $(addprefix probes/trace/buffer/,buffer.c select.c) \
    $(addprefix probes/trace/language/,event.c fetch.c filter.c filter_field.c hist.c hist_act.c trigger.c) \
    $(addprefix probes/trace/live/live_,hit.c program.c) $(addprefix probes/trace/ring/,ring.c page.c) \
    $(addprefix probes/gdb/gdb_,break.c collect.c frame.c place.c) probes/agent/agent.c \
    $(addprefix probes/bench/bench_,loop.c kind.c condition.c) \
    $(addprefix kernel/,cpu/percpu.c time/sample.c mm/exec_poke.c) \
    $(addprefix kernel/debug/,backtrace.c ksyms.c marker.c) libc/string.c
$(patsubst %,$(B)/%.o,$(filter-out $(FOR_SPEED),$(filter %.c,$(SOURCES)))): \
    private CFLAGS += $(FOR_SIZE)

# Only this file is compiled with the optimizations that make special copies of functions,
# so that the kernel has symbols like weigh.constprop.0, as other kernels have.
$(B)/kernel/work/work_special.c.o: CFLAGS := $(filter-out -fno-ipa-%,$(CFLAGS))

OFFSETS := kernel/cpu/asm_offsets.c probes/port/probe_offsets.c
NASM_TOOLS := kernel/debug/nasm_dwarf.py kernel/debug/elf64.py

# NASM runs twice: if NASM 2.16 lists the dependencies while assembling, the list
# lacks the included files. Local labels and those of macros are removed, because tools
# would take them for functions.
$(B)/%.asm.o: %.asm $(NASM_TOOLS) $(B)/flags.stamp | $(B)/asm_offsets.inc $(B)/probe_offsets.inc
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(NASMFLAGS) -M -MP -MT $@ $< >$(@:.o=.d)
	$(Q)$(NASM) $(NASMFLAGS) -o $@ $<
	$(Q)$(OBJCOPY) --wildcard --strip-symbol='..@*' --strip-symbol='[a-z]*.*' $@
	$(Q)$(TOOL_PYTHON) kernel/debug/nasm_dwarf.py $@

# Of debug data only the parameters of functions stay in modules. The modules that tests load are files inside of
# the image. The samples, and the module of bench, are files in /boot of each guest.
SAMPLES := $(patsubst %.c,$(B)/%.o,$(wildcard docs/samples/*.c))
PARAMS_TOOLS := kernel/module/params.py kernel/debug/gen_params.py \
    kernel/debug/dwarf.py kernel/debug/elf64.py
$(SAMPLES) $(TEST_MODULES): $(B)/%.o: %.c $(PARAMS_TOOLS) $(B)/flags.stamp $(B)/modules.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(MODULE_CFLAGS) -g -MD -MP -c -o $@ $<
	$(Q)$(TOOL_PYTHON) kernel/module/params.py $@
-include $(SAMPLES:.o=.d)

# The module of the command bench. It has no debug data, because a guest gets the whole file.
BENCH_OBJS := $(BENCH_MODULE:%=$(B)/%.o)
$(BENCH_OBJS): private CFLAGS += $(MODULE_ABI)
$(BENCH_OBJS): $(B)/modules.stamp
-include $(BENCH_OBJS:.o=.d)

module_link = $(LD) -r -S -z noexecstack $(1) -o $@ $(filter %.o,$^)
$(B)/probes/bench/bench.o: $(BENCH_OBJS)
	$(call say,LD,$@)
	$(Q)$(call module_link)

BOOT_FILES := $(SAMPLES) $(B)/probes/bench/bench.o
.PHONY: samples
samples: $(BOOT_FILES)

# C layouts for NASM: a C file is compiled to assembly, and sed takes the marked
# lines of it.
define offsets
$(B)/$(notdir $(1:.c=.inc)): $(1) $(B)/flags.stamp
	$$(call say,GEN,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(ASM_OFFSETS_FLAGS) -MD -MP -MT $$@ -MF $$(@:.inc=.d) -S \
	    -o $$(@:.inc=.s) $$<
	$$(Q)sed -n 's/^[[:space:]]*#define \([A-Z0-9_]*\) \$$$$/%define \1 /p' $$(@:.inc=.s) >$$@
endef
$(foreach file,$(OFFSETS),$(eval $(call offsets,$(file))))

-include $(OBJS:.o=.d) $(B)/asm_offsets.d $(B)/probe_offsets.d

$(eval $(call image,$(B),IMAGE_OBJS))

$(B)/sonde.map: $(B)/sonde.elf

$(B)/sonde.lst: $(B)/sonde.elf
	$(call say,LST,$@)
	$(Q)$(OBJDUMP) -d --no-show-raw-insn $< >$@

$(B)/sonde.sym: $(B)/sonde.elf
	$(call say,SYM,$@)
	$(Q)$(NM) -n $< >$@

# GRUB reads every section of a file that it boots, so this file has no debug data
# and no relocations.
$(B)/sonde.stripped: $(B)/sonde.elf
	$(Q)$(OBJCOPY) --strip-all $< $@

# The ISO boots under BIOS and, if grub-efi-amd64-bin is installed here, under UEFI.
$(B)/platforms.stamp: FORCE
	@$(call stamp_if_changed,'$(wildcard /usr/lib/grub/*/moddep.lst)')

$(B)/sonde.iso: $(B)/sonde.stripped $(BOOT_FILES) iso/grub.cfg $(B)/platforms.stamp
	$(call say,ISO,$@)
	@rm -rf $(B)/iso && mkdir -p $(B)/iso/boot/grub
	$(Q)cp $(B)/sonde.stripped $(B)/iso/boot/sonde.elf
	$(Q)cp $(BOOT_FILES) $(B)/iso/boot
	$(Q)cp iso/grub.cfg $(B)/iso/boot/grub/grub.cfg
	$(Q)$(GRUB_MKRESCUE) $(GRUB_FLAGS) -o $@ $(B)/iso >$(B)/iso.log 2>&1 || \
	    { cat $(B)/iso.log; exit 1; }

# Only the parts of GRUB that booting needs. Its start-up code asks for every kind
# of partition table.
GRUB_FLAGS := --locales= --fonts= --themes= --install-modules="multiboot2 normal serial \
    terminal iso9660 part_acorn part_amiga part_apple part_bsd part_dfly part_dvh \
    part_gpt part_msdos part_plan part_sun part_sunpc"

compile_commands.json: $(B)/flags.stamp $(B)/link.stamp
	@{ printf '['; sep=; here=$$(pwd -P); for f in $(filter %.c,$(PRODUCT)); do \
	    printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$sep" \
	    "$$here" "$$f" '$(CC) $(CFLAGS)' "$$f"; sep=,; \
	done; printf '\n]\n'; } >$@

# ---- the decoder as a host library -----------------------------------------------------

# The library is built without sanitizers, so that any program can link it.
INSN_HOST := $(INSN:%.c=$(B)/libinsn/%.o)
$(B)/libinsn/%.o: %.c $(B)/flags.stamp
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -MMD -MP -c -o $@ $<
-include $(INSN_HOST:.o=.d) $(addprefix $(B)/libinsn/probes/region/,gen_targets.d find_targets.d)

$(B)/host/libinsn.a: $(INSN_HOST)
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(HOSTAR) rcs $@ $^

host-insn: $(B)/host/libinsn.a ## the instruction decoder as a host library

# ---- running and testing ---------------------------------------------------------------

run: ## boot it, console on this terminal; installs what is missing
	$(Q)kernel/host/need.sh run
	$(Q)./sonde run

gdb: ## boot it stopped at its first instruction, gdb attached
	$(Q)kernel/host/need.sh run gdb
	$(Q)./sonde gdb

test: ## everything that should pass before a commit, or T=NAME, ACCEL=kvm; installs what is missing
	$(Q)kernel/host/need.sh run uefi gdb test
	$(Q)./sonde test $(ACCEL:%=--accel %) $(T)

test-tools: ## the tests that take longer, or need large programs of other projects
	$(Q)kernel/host/need.sh run uefi gdb suite test tools
	$(Q)./sonde test --tools

test-long: ## all of both, with more seeds, more CPUs and more time
	$(Q)kernel/host/need.sh run uefi gdb suite test tools
	$(Q)./sonde test --long

gdb-suite: ## gdb's own test-suite, at the kernel's stub and at gdbserver: what differs
	$(Q)kernel/host/need.sh run gdb suite test
	$(Q)./sonde test gdb/suite

STRESS_OPTIONS := MINUTES SEED CPUS ROUND CLASSES STEPPED DEBUGGER
stress: $(B)/tests/sonde.elf ## handlers that misbehave at random: MINUTES=60 SEED=1 CPUS=1,2,4,8
	$(Q)kernel/host/need.sh run
	$(Q)$(PYTHON) tests/stress/stress.py $(foreach option,$(STRESS_OPTIONS),$(if \
	    $($(option)),--$(shell echo $(option) | tr A-Z a-z) $($(option))))

labs-fresh: ## two labs graded in a container, or else in a Debian made for it
	$(Q)tests/labs/fresh.sh

test-fresh: ## `make run` and `make test` in a Debian that has only git, make and gcc
	$(Q)tests/run/fresh.sh

# Restricts a test or a target to one subject: T=NAME.
T ?=

core: $(B)/unit/test_extend_none ## breakpoints without the rest of the engine: linked, tested, booted, counted
	$(Q)prove --exec '' $<
	$(Q)kernel/host/need.sh run
	$(Q)PYTHONPATH=kernel/host:tests/run prove --exec '$(PYTHON)' tests/session/test_core.py
	$(Q)$(PYTHON) tests/lint/check_size --of probes/core/

ktest: ## tests in the guest; T=STEM for one subject, on SMP=N CPUs
	$(Q)kernel/host/need.sh run test
	$(Q)SMP=$(or $(SMP),2) ./sonde test $(if $(T),kernel/$(T),kernel)

fuzz: ## the fuzzers, half a minute each
	$(Q)kernel/host/need.sh run test
	$(Q)./sonde test --long fuzz

M ?=
mutants: ## undo what the code does, piece by piece: do tests notice? M=NAME for some
	$(Q)kernel/host/need.sh run uefi gdb test tools
	$(Q)tests/mutants/run.py --folder $(B)/mutants $(if $(AGAIN),--again) $(M)

MUTATE_OPTIONS := SEED COUNT LAST
mutate: ## random edits of a room: which do tests notice? ROOM=probes/trace SEED=1 COUNT=30
	$(Q)kernel/host/need.sh run gdb test
	$(Q)tests/mutants/mutate.py --folder $(B)/mutate $(if $(AGAIN),--again) $(foreach option, \
	    $(MUTATE_OPTIONS),$(if $($(option)),--$(shell echo $(option) | tr A-Z a-z) $($(option)))) $(ROOM)

check: $(B)/sonde.elf ## layers, headers, stems, format, lists; what clang and shellcheck say
	$(Q)kernel/host/need.sh gdb test
	$(Q)prove --exec '' --comments -j 2 \
	    $(filter-out $(if $(LONG),,%/check_tidy),$(wildcard tests/lint/check_*))

format: ## let clang-format and black have their way
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i
	$(Q)tests/lint/check_python --write

# ---- looking at it ---------------------------------------------------------------------

size: $(B)/sonde.elf ## how large image, documents and rooms are, beside the aims
	$(Q)./sonde exec 'probe stat' >$(B)/stat.txt
	$(Q)$(PYTHON) kernel/debug/image_size.py $< $(B)/stat.txt
	$(Q)$(PYTHON) tests/lint/check_size --rooms

FN ?= kmain
disas: $(B)/sonde.elf ## one function with its source: FN=name
	$(Q)$(OBJDUMP) -S --disassemble=$(FN) $<

hooks: ## install the pre-commit hook: format of changed files
	$(Q)install -m 755 tests/lint/pre-commit "$$(git rev-parse --git-path hooks)/pre-commit"

clean: ## remove all that was built
	$(Q)rm -rf $(B) compile_commands.json

include probes/insn/page/page.mk
include probes/bench/bench.mk

# make print-NAME prints the value of the variable NAME, for scripts.
print-%:
	@echo '$($*)'

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(sort $(filter Makefile %.mk,$(MAKEFILE_LIST))) | sort | expand -t 14

.PHONY: all run gdb gdb-suite core test test-tools test-long test-fresh labs-fresh ktest fuzz stress mutants mutate check format size disas \
    host-insn hooks clean help

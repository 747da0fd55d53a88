# bench.mk - builds and runs the measurements of what probes cost.

# A large text that is linked into the kernel and never called: it can
# have 100,000 probes.
BENCH_PLACES := 130000
$(B)/bench/text.asm: $(B)/sonde.elf probes/bench/host/gen_text.py kernel/debug/elf64.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) probes/bench/host/gen_text.py -o $@ --at-least $(BENCH_PLACES) $<

$(B)/bench/text.o: $(B)/bench/text.asm
	$(call say,NASM,$<)
	$(Q)$(NASM) -f elf64 -I./ -o $@ $<

# Functions that are called, for 10,000 probes that are hit one after the other.
$(B)/bench/crowd.o: probes/bench/crowd.asm kernel/base/proc.inc
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) -f elf64 -I./ -o $@ $<

# A marker with 10,000 places.
$(B)/bench/marks.o: probes/bench/marks.asm kernel/base/proc.inc
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) -f elf64 -I./ -o $@ $<

bench: $(B)/bench/text.o $(B)/bench/crowd.o $(B)/bench/marks.o ## what hits, registering and memory cost; PEER=dir: others beside
	$(Q)kernel/host/need.sh run plot
	$(Q)env -u MAKEFLAGS -u MAKEOVERRIDES CC='$(CC)' B=$(B)/bench \
	    EXTRA_OBJS='$(abspath $^)' PEER='$(PEER)' probes/bench/host/run.sh

bench-icount: ## instructions of a hit of each kind: no more than probes/bench/host/icount.tsv says
	$(Q)kernel/host/need.sh run
	$(Q)probes/bench/host/icount.py

bench-gdb: all ## what the kernel's stub for gdb costs, beside gdb at QEMU's stub
	$(Q)kernel/host/need.sh run gdb
	$(Q)probes/bench/host/gdb.py

.PHONY: bench bench-icount bench-gdb

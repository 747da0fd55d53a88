# contracts.mk - images in which public functions check their contract blocks at each call, also
# at calls inside of their file: README.md has what is checked.

CONTRACTS := tests/contracts/enter.asm tests/contracts/check.c
CONTRACT_OBJS := $(SOURCES:%=$(B)/%.o)

# A call of a thunk gets its place behind the entry NOP. A public function that the compiler
# inlines would not be asked.
$(filter-out %/work_special.c.o,$(filter %.c.o,$(CONTRACT_OBJS))): private CFLAGS += \
    -fpatchable-function-entry=10 -flive-patching=inline-only-static

SOURCES += $(CONTRACTS)
OBJS += $(B)/contracts_rules.o

CONTRACT_HEADERS := $(shell git ls-files 'boot/*.h' 'drivers/*.h' 'kernel/*.h' 'probes/*.h')
$(B)/contracts_rules.c: tests/contracts/contracts.py $(CONTRACT_HEADERS)
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< -o $@ $(CONTRACT_HEADERS)

$(B)/contracts_rules.o: $(B)/contracts_rules.c tests/contracts/contracts.h $(B)/flags.stamp
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

image_after = && $(PYTHON) tests/contracts/call_thunks.py $@ >/dev/null
LINK_TOOLS += tests/contracts/call_thunks.py

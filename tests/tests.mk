# tests.mk - what only tests build: the second image, with the tests that run in the kernel,
# the kernel that has only breakpoints, modules, and programs of the host.

include $(addsuffix /sources.mk,$(addprefix tests/,kernel conformance stress truth alone))

# The modules that tests load are files inside of the image of tests.
TEST_MODULES := $(patsubst %.c,$(B)/%.o,$(wildcard tests/kernel/modules/*.c))
# This module pretends that it was compiled with other headers.
$(B)/tests/kernel/modules/old.o: MODULE_ABI := -include kernel/module/abi.h -DSONDE_ABI=1
TEST_MODULES_ASM := $(patsubst %,$(B)/%.o,$(wildcard tests/kernel/modules/*.asm))
$(B)/tests/kernel/module_files.asm.o: $(TEST_MODULES) $(TEST_MODULES_ASM)
-include $(TEST_MODULES:.o=.d)

# The image of tests has the objects of the users' image, and those of the tests.
TEST_SOURCES := $(KTESTS) $(CONFORMANCE) $(STRESS)

# WITH=core builds other images, in another folder: of the engine they have only breakpoints.
ifeq ($(WITH),core)
SOURCES := $(KERNEL) $(CPU) $(MM) $(SYNC) $(THREAD) $(TIME) $(FS) $(DEBUG) $(MODULE) $(CONSOLE) \
    $(WORK) $(CORE) $(INSN) $(ALONE) $(DRIVERS) $(LIBC) $(BOOT)
TEST_SOURCES := $(ALONE_TESTS)
endif

# CHECK=contracts builds images whose functions check their contract blocks.
ifeq ($(CHECK),contracts)
include tests/contracts/contracts.mk
endif

TEST_OBJS = $(OBJS) $(TEST_SOURCES:%=$(B)/%.o) $(EXTRA_OBJS)
-include $(patsubst %,$(B)/%.d,$(TEST_SOURCES) $(TRUTH))
$(eval $(call image,$(B)/tests,TEST_OBJS))

# These tests are modules as well, so that they run on the image that users boot, whose text
# they leave as it is. They have no debug data, because a guest gets the whole file.
$(B)/tests/truth.o: $(TRUTH:%=$(B)/%.o)
	$(call say,LD,$@)
	$(Q)$(call module_link)
$(B)/tests/conformance.o: $(B)/tests/kernel/ktest.c.o $(CONFORMANCE:%=$(B)/%.o) tests/kernel/ktests.ld
	$(call say,LD,$@)
	$(Q)$(call module_link,-T tests/kernel/ktests.ld)

include tests/unit/unit.mk tests/hosted/hosted.mk tests/explore/explore.mk tests/checkers.mk

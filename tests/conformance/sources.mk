CONFORMANCE := \
    tests/conformance/enter.asm \
    tests/conformance/fixture.c \
    tests/conformance/vectors.c \
    tests/conformance/processor.c \
    tests/conformance/vary.c \
    tests/conformance/outcome.c \
    tests/conformance/copy.c \
    tests/conformance/pass.c \
    tests/conformance/programs.c \
    tests/conformance/tier.c \
    tests/conformance/refusal.c \
    tests/conformance/integer.asm \
    tests/conformance/address.asm \
    tests/conformance/stack.asm \
    tests/conformance/branch.asm \
    tests/conformance/system.asm \
    tests/conformance/vector.asm \
    tests/conformance/page.asm \
    tests/conformance/refused.asm \
    tests/conformance/test_fixtures.c \
    tests/conformance/test_page.c \
    tests/conformance/test_refused.c \
    tests/conformance/test_image.c \
    tests/conformance/test_table.c

"""image.py - the image with the tests of the kernel, and tests that are modules.

The kernel that users boot has no tests. Most tests of the kernel are in an image of their
own (tests/tests.mk), which has the same objects and those of the tests.
"""

import os

from sonde.guest import BUILD

TESTS = os.path.join(BUILD, "tests", "sonde.elf")
TRUTH = os.path.join(BUILD, "tests", "truth.o")

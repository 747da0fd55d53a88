#!/usr/bin/env python3
"""test_plans.py - plan a region at every instruction of the kernel, and check each
plan."""

import os
import subprocess
import sys

from sonde.guest import BUILD

sys.exit(
    subprocess.run(
        [os.path.join(BUILD, "region", "check_region"), os.path.join(BUILD, "sonde.elf")]
    ).returncode
)

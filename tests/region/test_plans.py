#!/usr/bin/env python3
"""test_plans.py - plan a region at every instruction of the kernel, and check each
plan."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))

sys.exit(
    subprocess.run(
        [os.path.join(BUILD, "region", "check_region"), os.path.join(BUILD, "sonde.elf")]
    ).returncode
)

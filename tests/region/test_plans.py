#!/usr/bin/env python3
"""test_plans.py - a region at every instruction of the kernel, looked at by check_region."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))

sys.exit(subprocess.run([os.path.join(BUILD, "region", "check_region"),
                         os.path.join(BUILD, "sonde.elf")]).returncode)

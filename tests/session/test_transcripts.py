"""test_transcripts.py - what the documents show is what happens."""

import glob
import os

from guest import BUILD, ROOT

PATTERNS = ("*.md", "docs/**/*.md", "probes/*.md", "tests/**/*.md")

# What a transcript shows is the same whatever this run of the tests was asked for.
ASKED_FOR = ("LONG", "SEED", "SMP", "TOOLS", "VERBOSE")


def documents():
    return [path for pattern in PATTERNS
            for path in sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))]


os.chdir(ROOT)
for name in ASKED_FOR:
    os.environ.pop(name, None)
# A test that a transcript runs may be running beside this one.
os.environ["TAP_FOLDER"] = os.path.join(BUILD, "tap", "transcripts")
os.execv("./sonde", ["./sonde", "check", *documents()])

"""test_transcripts.py - runs the commands in all documents, and compares their output
with what the documents show.
"""

import glob
import os

from sonde.guest import BUILD, ROOT

PATTERNS = ("*.md", "docs/**/*.md", "probes/*.md", "tests/**/*.md")

# Options of this run of the tests. They must not change what a transcript prints.
ASKED_FOR = ("LONG", "SEED", "SMP", "TOOLS", "VERBOSE")


def documents():
    return [
        path
        for pattern in PATTERNS
        for path in sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))
    ]


os.chdir(ROOT)
for name in ASKED_FOR:
    os.environ.pop(name, None)
# A transcript runs tests that may also be running now as a part of this run of the tests.
os.environ["TAP_FOLDER"] = os.path.join(BUILD, "tap", "transcripts")
os.execv("./sonde", ["./sonde", "check", *documents()])

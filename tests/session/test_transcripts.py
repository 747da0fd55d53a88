"""test_transcripts.py - runs the commands in all documents, and compares their output
with what the documents show.
"""

import glob
import os

from sonde.guest import BUILD, ROOT

PATTERNS = ("*.md", "docs/**/*.md", "probes/*.md", "tests/**/*.md")

# Options of this run of the tests. They must not change what a transcript prints.
ASKED_FOR = ("LONG", "SEED", "SMP", "TOOLS", "VERBOSE")


def check(patterns):
    """Let ./sonde check, in place of this program, the documents of the patterns."""
    os.chdir(ROOT)
    for name in ASKED_FOR:
        os.environ.pop(name, None)
    # A transcript runs tests that may also be running now as a part of this run of the tests.
    os.environ["TAP_FOLDER"] = os.path.join(BUILD, "tap", "transcripts")
    paths = [path for one in patterns for path in sorted(glob.glob(one, recursive=True))]
    os.execv("./sonde", ["./sonde", "check", *paths])


if __name__ == "__main__":
    check(PATTERNS)

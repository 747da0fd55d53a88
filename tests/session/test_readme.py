"""test_readme.py - runs the commands in README.md. session/transcripts runs those in all
documents, and takes longer.
"""

from test_transcripts import check

check(["README.md"])

#!/usr/bin/env python3
"""test_words.py - tests of the check of subjects: it refuses exactly the sentences that
it should refuse, and finds them in each kind of file.
"""

import os
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "tests/lint"))
import words

REFUSED = {
    "Who comes to a jump gets a counter.": "Who",
    "It counts for whoever is the first in line.": "whoever",
    "Then nobody can be inside.": "nobody",
    "The cell is for those who trap.": "who",
    "One that comes between jumps comes as a jump.": "One that",
    "It is freed; one that is open\nstays.": "one that",
    "A thread that moves is seen, and one\nthat sleeps is not.": "one that",
    "It waits. What has left is not counted.": "What has",
    "So nobody knows, and WHOEVER asks waits.": "nobody",
}
ACCEPTED = (
    "A reader who has not seen the code explains it.",
    "The students who try it write a report.",
    "The new instruction is exchanged for one that ends the flow.",
    "The copy is the one that runs.",
    "The log tells what has changed.",
    "The whole line, and its owner: no one else.",
    "`who` and `nobody` are words of a language.",
)
SENTENCE = "Then nobody waits."
FILES = {
    "a.c": ('char *s = "nobody /* nobody";\n\n/* Then\n * nobody waits.\n */\n', 4),
    "b.h": ("int x; // Then nobody waits.\n", 1),
    "c.asm": ("    db 'nobody; nobody', 0\n    nop ; Then nobody waits.\n", 2),
    "d.py": ('S = "nobody # nobody"\n# Then nobody waits.\n', 2),
    "e.py": ('def f():\n    """Then\n    nobody waits."""\n', 3),
    "f.mk": ("X := $(nobody)\n# Then nobody waits.\n", 2),
    "g.md": (
        "```c\nnobody\n```\n\n    nobody\n\nThen `nobody` waits.\nnobody waits.\n",
        8,
    ),
    "h.toml": ('old = "nobody"\nwhy = "Then nobody waits."\n', 2),
}


class Words(scratch.Scratch):
    def test_sentences_that_hide_their_noun_are_refused(self):
        for sentence, subject in REFUSED.items():
            found = [words for _, words in words.refused(sentence)]
            self.assertEqual(found[:1], [subject], sentence)

    def test_sentences_that_name_their_noun_are_accepted(self):
        for sentence in ACCEPTED:
            found = list(words.complaints("a.md", sentence + "\n"))
            self.assertEqual(found, [], sentence)

    def test_each_kind_of_file_is_read_with_the_line(self):
        for path, (text, line) in FILES.items():
            found = list(words.complaints(path, text))
            self.assertEqual(len(found), 1, (path, found))
            self.assertIn(f'{path}:{line}: "nobody"', found[0])

    def test_lines_that_follow_each_other_are_one_text(self):
        text = "; It waits, and one\n; that sleeps does not.\n"
        found = list(words.complaints("a.asm", text))
        self.assertEqual(len(found), 1, found)


scratch.main()

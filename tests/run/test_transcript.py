"""test_transcript.py - tests of transcript.py: reading, and comparing with output."""

import tap
from sonde.transcript import (
    GUEST,
    HOST,
    as_rows,
    difference,
    explain,
    sonde_words,
    steps,
)

PAGE = """\
Text with `sonde> in it`.

```console
$ ./sonde exec 'a b' \\
    'c'
one

two

sonde> d
sonde>
```

```c
sonde (not a prompt)
```

Indented:

    sonde> e
    three

* in a list

  ~~~
  user@host:~/sonde$ ./sonde run --smp 4
  boot
  sonde> f
    four
  ~~~

```sh
$ make run
```

````
```
not a block of its own
```
    sonde> g
````
"""

PLAIN = (
    "Script started\r\n$ make\r\nbuilt\r\nsonde> b\rsonde> \x1b[31ma\x1b[0m\r\r\n"
    "[ok]\x1b[K\r\r\n\r\n"
)


def facts(found):
    return [
        (step.line, step.prompt, step.command, step.first, step.rows) for step in found
    ]


def a_document_is_read():
    want = [
        (4, HOST, "./sonde exec 'a b' 'c'", 6, ["one", "", "two"]),
        (10, GUEST, "d", 11, []),
        (20, GUEST, "e", 21, ["three"]),
        (26, HOST, "./sonde run --smp 4", 27, ["boot"]),
        (28, GUEST, "f", 29, ["  four"]),
    ]
    tap.equal(facts(steps("page.md", PAGE)), want, "blocks with prompts, in their order")
    tap.equal(
        facts(steps("-", PAGE)), want, "the same where only a fence tells what it is"
    )
    name = steps("page.md", PAGE)[1].name
    tap.equal(name, "page.md:10: sonde> d", "a step is called by file, line and command")


def a_mark_is_enough():
    found = steps("page.md", "```console\n$ make run\nbuilt\n```\n")
    tap.equal(
        facts(found), [(2, HOST, "make run", 3, ["built"])], "a block marked console"
    )


def plain_text_is_read():
    want = [(2, HOST, "make", 3, ["built"]), (4, GUEST, "a", 5, ["[ok]"])]
    tap.equal(facts(steps("typescript", PLAIN)), want, "what a terminal has recorded")
    tap.equal(
        steps("typescript", "no prompt\n"), [], "text without a prompt has no steps"
    )
    tap.equal(steps("page.md", "sonde> a\n"), [], "in a document, only blocks have them")


def words_of_the_host():
    tap.equal(
        sonde_words("./sonde exec 'a | b' # why"), ["exec", "a | b"], "quoted words"
    )
    for command, why in (
        ("make run", "not a command of ./sonde"),
        ("B=build ./sonde exec a", "not a command of ./sonde"),
        ("./sonde exec a | grep b", "it needs the host's shell"),
        ("./sonde exec a > b", "it needs the host's shell"),
        ("./sonde exec a;reboot", "it needs the host's shell"),
        ("./sonde exec 'a", "No closing quotation"),
        ("./sonde python x.py", "./sonde python is not for transcripts"),
        ("sonde --help", "./sonde --help is not for transcripts"),
        ("./sonde exec --log f a", "--log is not for transcripts"),
        ("./sonde exec a --lo=f", "--lo=f is not for transcripts"),
        ("./sonde trace a -of -- b", "-of is not for transcripts"),
    ):
        try:
            sonde_words(command)
            tap.check(False, f"{command}: is refused")
        except ValueError as error:
            tap.equal(str(error), why, f"{command}: {why}")


def agree(shown, got):
    return difference(shown.split("\n"), got.split("\n")) is None


def what_agrees():
    for shown, got, what in (
        ("a  b", " a\tb ", "blanks are blanks"),
        ("p1 ffff....... k", "p1 ffff8020 k", "dots in a word"),
        ("at ... k", "at x+0x0 k", "dots that are a word"),
        ("(99.9..100 %)", "(99.97 %)", "a number within a range"),
        ("n=1..3,", "n=3,", "the end of a range, in a word"),
        ("1..5", "1..5", "a word that looks like a range"),
        ("a\n...\nc", "a\nc", "no line for dots"),
        ("a\n...\nc", "a\nb\nc\nb\nc", "many lines for dots"),
        ("...\na\n...\nb\n...", "x\na\ny\na\nb", "dots everywhere"),
        ("[    0.1] C0: a", "[  12.3] C3: a", "the time and CPU of a line of the log"),
    ):
        tap.check(agree(shown, got), what)


def what_does_not():
    for shown, got, what in (
        ("a b", "a c", "another word"),
        ("a b", "a b c", "a word more"),
        ("a ... c", "a b b c", "dots in a line are one word"),
        ("1", "2", "another number"),
        ("n=1..3", "n=4", "a number beyond the range"),
        ("n=1..3", "n=x", "no number where there is a range"),
        ("7...", "80", "another beginning of the word"),
        ("a\nb", "a", "a line is missing"),
        ("a", "a\nb", "a line more"),
        ("a\n...\nc", "a\nb", "the line behind the dots is missing"),
        ("a\n...\nc", "a\nc\nd", "a line behind the last one"),
        ("[ 0.1] C0: a", "[ 0.1] C0: b", "another line of the log"),
    ):
        tap.check(not agree(shown, got), what)


def a_difference_is_named():
    tap.equal(difference(["a", "b"], ["a", "c"]), (1, 1), "the pair that differs")
    tap.equal(difference(["...", "b", "x"], ["a", "b", "y"]), (2, 2), "also behind dots")
    step = steps("f", "sonde> a\none\n...\ntwo\n")[0]
    want = [
        "expected, f:4: two",
        "got: nothing more",
        "all that came:",
        "| one",
        "| three",
    ]
    tap.equal(explain(step, ["one", "three"]), want, "with file and line, and all of it")
    tap.equal(
        explain(step, as_rows("one\n\x1b[31mtwo\x1b[0m\r\n\n")), [], "none, no words"
    )


tap.run(
    a_document_is_read,
    a_mark_is_enough,
    plain_text_is_read,
    words_of_the_host,
    what_agrees,
    what_does_not,
    a_difference_is_named,
)

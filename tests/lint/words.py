"""words.py - finds subjects that hide their noun, in comments and in documents.

Each sentence names its subject (the CPU, the thread, the site, the jump). "Who",
"whoever", "nobody", "one that" and "what has" stand where a noun exists, and the reader
has to guess it. "Who" is fine behind a noun for a person: "a reader who has not seen the
code".
"""

import ast
import io
import re
import tokenize

PERSON = ("reader", "readers", "student", "students", "user", "users", "author", "authors",
          "person", "people", "developer", "developers")  # fmt: skip
WHO = r"who|whoever|nobody"
CLAUSE = (
    r"(?:\A|\n\s*\n|[.:;,(]\s+|\b(?:and|but|or|that|if|so|because|while|when|where)\s+)"
)
REFUSED = re.compile(
    rf"\b(?:(?P<last>\w+)\s+)?(?P<who>{WHO})\b|"
    rf"{CLAUSE}(?P<subject>(?:one\s+that|what\s+(?:has|have)))\b",
    re.I,
)

# A file without this has nothing to refuse, whatever its comments are.
MAY_BE = re.compile(rf"\b(?:{WHO})\b|\bone\b\W+that\b|\bwhat\b\W+(?:has|have)\b", re.I)

C = (".c", ".h", ".pml", ".ld")
ASM = (".asm", ".inc")
HASH = (".sh", ".mk", ".cfg", ".toml", ".tsv", ".yml", "Makefile", ".clang-format")
C_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S
)
ASM_TOKEN = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|`(?:\\.|[^`\\\n])*`|;[^\n]*')
HASH_TOKEN = re.compile(r"""(?:^|(?<=\s))#[^\n]*""", re.M)
WHY = re.compile(r'^why = (".*")$', re.M)  # of a mutant
SIGN = re.compile(r"^\s*(?:/\*+|\*/|\*(?!\w)|//+|;+|#+!?)?\s?|\s*\*/\s*$")
CODE = re.compile(r'`[^`\n]*`|"\w+(?: \w+)?"')  # and words that are quoted


def spans(token, opening, text):
    """(offset, text) of each comment. Strings are tokens, too, so that a comment sign
    inside a string does not count."""
    return [(m.start(), m[0]) for m in token.finditer(text) if m[0].startswith(opening)]


def without_comments(path, text):
    """@text of C or assembly, without its comments."""
    token, opening = (ASM_TOKEN, ";") if path.endswith(ASM) else (C_TOKEN, "/")
    return token.sub(lambda m: "" if m[0].startswith(opening) else m[0], text)


def python_spans(text):
    """(offset, text) of each comment and of each docstring."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [
        (starts[t.start[0] - 1] + t.start[1], t.string)
        for t in tokens
        if t.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef)
        ) and ast.get_docstring(node):
            string = node.body[0]
            lines = text.split("\n")[string.lineno - 1 : string.end_lineno]
            found.append((starts[string.lineno - 1], "\n".join(lines)))
    return sorted(found)


def document_spans(text):
    """The text of a document without the blocks that show code or output."""
    fenced = re.sub(
        r"^```.*?^```", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.M | re.S
    )
    lines = ["" if line.startswith("    ") else line for line in fenced.split("\n")]
    return [(0, "\n".join(lines))]


def is_program(text, name):
    return re.match(rf"#!.*\b{name}", text)


def comments(path, text):
    """(line, text) of each comment, without comment signs; None: the language of the file
    is not known."""
    if path.endswith(".md"):
        lines = document_spans(text)[0][1].split("\n")
        return [(1, "\n".join(CODE.sub("`code`", line) for line in lines))]
    if path.endswith(C):
        found = spans(C_TOKEN, "/", text)
    elif path.endswith(ASM):
        found = spans(ASM_TOKEN, ";", text)
    elif path.endswith(".py") or is_program(text, "python"):
        found = python_spans(text)
    elif path.endswith(HASH) or is_program(text, "sh"):
        found = spans(HASH_TOKEN, "#", text)
        found += [(m.start(1), m[1]) for m in WHY.finditer(text)]
    else:
        return None
    return joined([(text.count("\n", 0, at) + 1, bare(comment)) for at, comment in found])


def bare(comment):
    return "\n".join(
        SIGN.sub("", CODE.sub("`code`", line)) for line in comment.split("\n")
    )


def joined(found):
    """Join comments on lines that follow each other to one text."""
    texts = []
    for line, text in found:
        if texts and texts[-1][0] + texts[-1][1].count("\n") + 1 == line:
            texts[-1] = (texts[-1][0], texts[-1][1] + "\n" + text)
        else:
            texts.append((line, text))
    return texts


def refused(text):
    """(offset, words) of each subject that hides its noun."""
    at = 0
    while match := REFUSED.search(text, at):
        group = "who" if match["who"] else "subject"
        words = " ".join(match[group].split())
        last = (match["last"] or "").lower()
        if not (words.lower() == "who" and last in PERSON):
            yield match.start(group), words
        at = match.end(group)


def complaints(path, text):
    """One line for each refused subject: the place, and the words."""
    if not MAY_BE.search(text):
        return
    for line, comment in comments(path, text) or ():
        for at, words in refused(comment):
            number = line + comment.count("\n", 0, at)
            yield f'{path}:{number}: "{words}" hides its noun: name the CPU, the thread, ...'

"""asked.py - what a page can ask of the server: a function for each request.

Each gets the Desk with the guests, the words behind the `?` of the request, and its body. It
returns an object, or yields several; or raises Refused.
"""

import base64
import os
import re
import subprocess
import sys
import threading

from docs.labs.host import grade
from docs.labs.host import labs
from probes.film.host import command as films
from probes.film.host import page as film_page
from probes.film.host import scenes
from kernel.console.web import answer, listing, sources
from kernel.console.web.guests import Refused, text_of
from sonde.errors import write_whole
from sonde.guest import ROOT
from sonde.options import UsageError

HERE = os.path.dirname(os.path.abspath(__file__))
# The folders and kinds of files to which a task may link.
FOLDERS = ("docs", "drivers", "kernel", "libc", "probes", "tests")
TEXTS = (".asm", ".c", ".h", ".md", ".pml", ".py", ".toml", ".tsv")
PLACE = re.compile(r"[\w.:#/+-]+")  # what names a function or a file


# ---- labs and documents


def text_to_edit(path):
    """Return the text of a file, with a line feed behind each line, and how the lines end
    in the file. Refused: it is not UTF-8.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError:
        wrong = f"{os.path.basename(path)} is not UTF-8: the editor would damage it"
        raise Refused(400, wrong) from None
    return text, file.newlines if isinstance(file.newlines, str) else "\n"


class Lab:
    """A lab that a page shows, or none. Needs no guest."""

    def __init__(self, word):
        try:
            self.name = labs.name_of(word) if word else None
        except UsageError as error:
            raise Refused(404, str(error)) from None
        self.folder = labs.folder(self.name) if word else None

    def path_of(self, name):
        if not self.name or name not in labs.handed_in(self.name):
            raise Refused(404, f"{name} is no file of this lab")
        return os.path.join(self.folder, name)

    def files(self):
        """Return {name: text} of the files that the student writes."""
        names = labs.handed_in(self.name) if self.name else ()
        return {name: text_to_edit(self.path_of(name))[0] for name in names}

    def headers(self):
        """Return {name: text} of the lab's headers. The grader has its own copies."""
        start = labs.starting(self.name) if self.name else HERE
        return {
            name: text_of(os.path.join(start, name))
            for name in sorted(os.listdir(start))
            if name.endswith(".h")
        }

    def modules(self):
        """Return the files that can be loaded into the guest as modules."""
        if self.name not in labs.IN_GUESTS:
            return []
        found = (n for n in os.listdir(self.folder) if n.endswith((".c", ".o")))
        last = self.name + "."  # the student's own module may need the others
        return sorted(found, key=lambda name: (name.startswith(last), name))


def task_of(lab):
    """Return the name and the text of the document that a page shows first."""
    if not lab:
        return (
            "docs/none.md",
            "# The console\n\nType `help`, choose a lab above, or begin with "
            "[a first hour](tour.md) or [a function that runs](#function=vfs_read).",
        )
    name = f"{labs.TASKS}/{lab}/README.md"
    return name, text_of(os.path.join(ROOT, name))


def text_of_tree(name):
    """Return the name and the text of a file of the tree, or a list of the names in a
    folder. Raises Refused for files that a reader of the page may not see.
    """
    path = os.path.normpath(name)
    full = os.path.join(os.path.realpath(ROOT), path)
    is_ours = path.split("/")[0] in FOLDERS and os.path.realpath(full) == full
    if path.startswith(sources.HIDDEN) and not path.endswith(".pml"):
        is_ours = False
    if is_ours and os.path.isdir(full):
        rows = (
            f"- [{row}]({row})"
            for row in sorted(os.listdir(full))
            if row.endswith(TEXTS) or os.path.isdir(os.path.join(full, row))
        )
        return f"{path}/folder.md", "\n".join([f"# {path}", "", *rows])
    if not is_ours or not path.endswith(TEXTS) or not os.path.isfile(full):
        raise Refused(404, f"{name} cannot be read here")
    return path, text_of(full)


def sonde(*words):
    """Run a command of ./sonde. Yield what is running, then the output and the status."""
    with subprocess.Popen(
        [sys.executable, os.path.join(ROOT, "sonde"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    ) as process:
        lines = []
        try:
            for line in process.stdout:
                if line.startswith(grade.RUNNING):
                    yield {"running": line.rstrip()}
                else:
                    lines.append(line)
        except GeneratorExit:  # the page has gone
            process.terminate()
            raise
    yield {"output": "".join(lines), "status": process.returncode}


BEGINS = threading.Lock()  # of what makes the folders of labs


def begin(lab):
    """Make the folder of a lab. A lab that compiles something for it does that in a process
    of its own: when confine.run() ends, it kills all children that have come, and here
    guests of other pages could be among them.
    """
    with BEGINS:
        if not grade.has_seeds(lab.name):
            grade.begin(lab.name, lab.folder)
            return
        done = list(sonde("lab", lab.name, lab.folder))[-1]
    if done["status"]:
        raise Refused(500, done["output"])


# ---- requests


def ask_lab(_desk, query, _body):
    lab = Lab(query.get("lab", ""))
    if lab.name:
        begin(lab)
    name, task = task_of(lab.name)
    return {
        "lab": lab.name,
        "name": name,
        "task": task,
        "files": lab.files(),
        "headers": lab.headers(),
        "modules": lab.modules(),
        "labs": [[n, name] for name, n in labs.NUMBERS.items()],
    }


def ask_start(desk, _query, _body):
    return {"id": desk.start().name, "grace": desk.grace}


def ask_read(_desk, query, _body):
    name, text = text_of_tree(query.get("name", ""))
    return {"name": name, "text": text}


def ask_leave(desk, query, _body):
    """The page goes, so that its guest is not needed any more."""
    session = desk.sessions.get(query.get("id"))
    if session:
        desk.drop([session])
    return {}


def ask_save(_desk, query, body):
    """@body: {"was": the text that the page began with, "text": the new one}"""
    path = Lab(query.get("lab", "")).path_of(query.get("name", ""))
    (now, ends), text = text_to_edit(path), body.get("text")
    if text is None:
        raise Refused(400, "no text to save")
    if body.get("was") not in (now, None) and now != text:
        raise Refused(409, "the file was changed elsewhere; save again to replace that")
    try:
        write_whole(path, text.replace("\n", ends).encode())
    except UnicodeEncodeError as error:
        wrong = f"{text[error.start]!a} at character {error.start} is half of a character"
        raise Refused(400, f"not saved: {wrong}") from None
    return {"saved": len(text)}


def ask_load(desk, query, _body):
    session, lab = desk.of(query.get("id")), Lab(query.get("lab", ""))
    name = query.get("name", "")
    if name not in lab.modules():
        raise Refused(404, f"{name} is no module of this lab")
    with session.asking:
        words = ("--socket", session.machine, os.path.join(lab.folder, name))
        return list(sonde("module", *words))[-1]


def ask_grade(_desk, query, _body):
    lab = Lab(query.get("lab", ""))
    if not lab.name:
        raise Refused(404, "there is no lab to grade")
    again = [
        f"--{word}={query[word]}"
        for word in ("seed", "case")
        if query.get(word, "").isdecimal()
    ]
    return sonde("grade", lab.name, lab.folder, *(again or ["--progress"]))


def one_line(query, name):
    """A word of a request that becomes a part of a command."""
    text = query.get(name, "")
    if not text or not text.isprintable():
        raise Refused(404, f"no {name}")
    return text


def ask_functions(desk, query, _body):
    session = desk.of(query.get("id"))
    symbols = listing.module_symbols(session.output)
    in_modules = [(f"{of}:{name}", f"[{of}]") for _, name, of in symbols]
    loads = (line.split() for line in session.output("run list").splitlines())
    return {
        "functions": sources.image().functions() + in_modules,
        "workloads": [words[0] for words in loads if words],
    }


def ask_function(desk, query, _body):
    name = query.get("name", "")
    if not PLACE.fullmatch(name):
        raise Refused(404, f"{name} is no name of a function or a file")
    return desk.of(query.get("id")).show(name)


def ask_counts(desk, query, _body):
    session = desk.of(query.get("id"))
    with session.reading:
        function = session.seen_function()
        if query.get("all") == "1":
            function.told = {}
        return {"of": function.asked, **function.counts()}


def ask_threads(desk, query, _body):
    session = desk.of(query.get("id"))
    with session.reading:
        return {"rows": session.seen_function().threads()}


def ask_path(desk, query, _body):
    session = desk.of(query.get("id"))
    with session.reading:
        function = session.seen_function()
        row = query.get("row", "")
        if not row.isdecimal() or int(row) >= len(function.rows):
            raise Refused(404, "there is no such instruction")
        return {"parts": function.path(int(row))}


def ask_films(_desk, _query, _body):
    """All films of docs/films.md, as the player has them."""
    return {
        "names": list(scenes.SCENES),
        "films": [film_page.data_of(films.load(name)) for name in scenes.SCENES],
    }


def ask_record(desk, query, _body):
    session = desk.of(query.get("id"))
    return session.record(one_line(query, "place"), one_line(query, "run"))


def ask_question(desk, query, _body):
    session = desk.of(query.get("id"))
    session.ask(one_line(query, "text") if query.get("text") else None)
    return {}


def ask_answer(desk, query, _body):
    with desk.of(query.get("id")).looked() as (recording, is_new):
        is_new = is_new or query.get("all") == "1"
        return answer.picture(recording) if is_new else {}


def ask_file(desk, query, _body):
    """The answer as a file, in base64."""
    ending = query.get("kind", "")
    if ending not in answer.WRITERS:
        raise Refused(404, "there is no such file")
    with desk.of(query.get("id")).looked() as (recording, _):
        data = answer.file_of(recording, ending)
    if not data:
        raise Refused(404, f"the answer has nothing for a {ending} file")
    return {"base64": base64.b64encode(data).decode()}


def ask_command(desk, query, _body):
    session = desk.of(query.get("id"))
    reply = session.request(one_line(query, "text"), may_fail=True)
    return {"output": reply.text, "status": reply.errno}


ASKED = {name[4:]: fn for name, fn in globals().items() if name.startswith("ask_")}

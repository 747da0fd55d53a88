"""web.py - `./sonde web`: shows the console, a lab's task and an editor in a browser.

Each page load starts a guest. The guest's console goes through a WebSocket, by Debian's
websockify. When a page is closed, its guest ends some seconds later. Until then, a page
that has lost its connection can connect to its guest again.

Without a token, the server serves only this machine, and only pages that came from this
server (Host and Origin): a page of another site must not type into a guest. With a token,
the server serves any machine that knows the token.
"""

import base64
import contextlib
import hmac
import json
import os
import queue
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from docs.labs.host import grade
from docs.labs.host import labs
from probes.film.host import command as films
from probes.film.host import film as film_file
from probes.film.host import page as film_page
from probes.film.host import scenes
from probes.trace.host.take import TraceError
from kernel.console.web import answer, listing
from sonde.errors import SondeError
from sonde.guest import BUILD, ROOT, Guest, GuestError
from sonde.machine import LIMIT, Machine
from sonde.memory import Memory
from sonde.options import UsageError

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's websockify is
from websockify import websocketproxy

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {
    "@xterm/xterm": "6.0.0",
    "@xterm/addon-fit": "0.11.0",
    "codemirror": "5.65.20",
    "marked": "16.4.2",
}
MODULES = os.path.join(BUILD, "web", "node_modules")
PAGE = os.path.join(HERE, "page.html")
STATIC = {  # the files that the page loads
    "page.js": os.path.join(HERE, "page.js"),
    "document.js": os.path.join(HERE, "document.js"),
    "function.js": os.path.join(HERE, "function.js"),
    "question.js": os.path.join(HERE, "question.js"),
    "film.js": os.path.join(ROOT, "probes", "film", "host", "film.js"),
    "function.css": os.path.join(HERE, "function.css"),
    "marked.js": os.path.join(MODULES, "marked/lib/marked.umd.js"),
    "xterm.js": os.path.join(MODULES, "@xterm/xterm/lib/xterm.js"),
    "xterm.css": os.path.join(MODULES, "@xterm/xterm/css/xterm.css"),
    "fit.js": os.path.join(MODULES, "@xterm/addon-fit/lib/addon-fit.js"),
    "codemirror.js": os.path.join(MODULES, "codemirror/lib/codemirror.js"),
    "codemirror.css": os.path.join(MODULES, "codemirror/lib/codemirror.css"),
    "simple.js": os.path.join(MODULES, "codemirror/addon/mode/simple.js"),
    "clike.js": os.path.join(MODULES, "codemirror/mode/clike/clike.js"),
}
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
}
# The folders and kinds of files to which a task may link.
FOLDERS = ("docs", "drivers", "kernel", "libc", "probes", "tests")
TEXTS = (".asm", ".c", ".h", ".md", ".pml", ".py", ".toml", ".tsv")
LOCAL = ("127.0.0.1", "localhost", "[::1]")
# The browser runs only the scripts of STATIC, and no script in a document.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
BODY_MAX = 1 << 20
START_S = 120
PLACE = re.compile(r"[\w.:#/+-]+")  # what names a function or a file
PROMPT = "sonde>"
FILM_MS = 5  # what the patcher waits after each step
DEFAULT_LOAD = "vfs"  # runs for a film, if the page has chosen no workload


def install():
    """Install the page's packages from npm. Raises CalledProcessError if npm fails."""
    if all(os.path.exists(path) for path in STATIC.values()):
        return
    folder = os.path.dirname(MODULES)
    os.makedirs(folder, exist_ok=True)
    words = [f"{name}@{version}" for name, version in PACKAGES.items()]
    subprocess.run(
        [
            "npm",
            "install",
            "--silent",
            "--no-fund",
            "--no-audit",
            "--no-save",
            "--prefix",
            folder,
            *words,
        ],
        check=True,
    )


class Refused(Exception):
    """A request is refused: a status of HTTP, and a sentence for the user."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


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
        return {name: text_of(self.path_of(name)) for name in names}

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


class Session:
    """The guest of a page."""

    def __init__(self, setup_of):
        self.name = secrets.token_urlsafe(12)
        self.place = tempfile.mkdtemp(prefix="sonde-web-")
        self.console = os.path.join(self.place, "console")
        self.machine = os.path.join(self.place, "machine")
        self.qmp = os.path.join(self.place, "qmp")
        self.lock = threading.Lock()
        self.asking, self.reading = threading.Lock(), threading.Lock()
        self.answering = threading.Lock()
        self.log = os.path.join(self.place, "log")  # what the console has printed
        self.is_hidden = False
        self.memory = None  # of the guest, as soon as a page wants to see it
        self.function = None  # the function that the page shows
        self.standing = None  # its question, until it is withdrawn
        self.page_line = None  # the socket of the page that is connected
        self.seen = time.monotonic()
        try:
            self.guest = Guest(
                setup_of(
                    console=self.console,
                    socket=self.machine,
                    qmp=self.qmp,
                    log=self.log,
                )
            )
        except BaseException:
            shutil.rmtree(self.place, ignore_errors=True)
            raise

    def connect(self):
        """Return a socket of the guest's console. QEMU serves one connection at a time,
        so the connection of an earlier page is cut.
        """
        with self.lock:
            self.cut()
            self.page_line = socket.socket(socket.AF_UNIX)
            end = time.monotonic() + 10
            while True:
                try:
                    self.page_line.connect(self.console)
                    return self.page_line
                except OSError:
                    if time.monotonic() > end or self.guest.ended():
                        raise
                    time.sleep(0.05)

    def cut(self):
        if self.page_line:
            try:
                self.page_line.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.page_line = None

    def leave(self, line):
        with self.lock:
            if self.page_line is line:
                self.page_line = None
            self.seen = time.monotonic()

    def is_left(self, grace):
        return not self.page_line and time.monotonic() - self.seen > grace

    def request(self, command, limit=LIMIT, may_fail=False):
        """Run a command in the guest, beside its console. Return the Reply."""
        with self.asking:
            self.wait_up()
            with Machine.connect(self.machine) as machine:
                if not self.is_hidden:  # what the page asks for is in no count
                    machine.request("probe hide")
                    self.is_hidden = True
                return machine.request(command, limit, may_fail=may_fail)

    def wait_up(self):
        """Wait until the guest listens: what is sent before that is lost."""
        end = time.monotonic() + START_S
        while PROMPT not in text_of(self.log):
            if self.guest.ended() or time.monotonic() > end:
                raise Refused(500, "the guest has not come to its prompt")
            time.sleep(0.1)

    def output(self, command):
        """The output of a command of ours. Raises Refused if it fails."""
        reply = self.request(command, may_fail=True)
        if reply.errno:
            raise Refused(404, str(reply) or reply.name)
        return reply.text

    def show(self, name):
        """Let the page see the function @name. Return it as JSON."""
        with self.reading:
            self.memory = self.memory or Memory(self.qmp)
            self.function = listing.Function(name, self.output, self.memory)
            return self.function.json()

    def ask(self, question):
        """Withdraw the question of before, and let @question stand, if there is one."""
        with self.answering:
            if self.standing:
                self.standing.withdraw()
            self.standing = None
            if question:
                try:
                    self.standing = answer.Standing(self, self.guest, question)
                except TraceError as error:
                    raise Refused(404, str(error)) from None

    @contextlib.contextmanager
    def looked(self):
        """The answer to the question that stands, and whether it is another one than at the
        last look.
        """
        with self.answering:
            if not self.standing:
                raise Refused(404, "no question stands")
            try:
                yield self.standing.look()
            except TraceError as error:
                raise Refused(500, str(error)) from None

    def record(self, place, load):
        """Record a film of @place: a probe comes, the workload @load runs, the probe goes.
        Return it as JSON.
        """
        self.output(f"film start {place} {FILM_MS}")
        try:
            name = self.output(f"probe add {place}").split()[0]
            for _ in range(2):  # in the first one, the optimizer makes the jump
                self.output(f"run {load}")
            self.output(f"probe del {name}")
        finally:
            self.request("film stop", may_fail=True)
        film = film_file.parse(self.output("cat /tmp/film"))
        film.title = f"A probe comes to {place}, and goes"
        return film_page.data_of(film)

    def seen_function(self):
        if not self.function:
            raise Refused(404, "the page shows no function")
        return self.function

    def stop(self):
        self.cut()
        self.guest.stop()
        if self.memory:
            self.memory.__exit__()
        shutil.rmtree(self.place, ignore_errors=True)


class Desk:
    """Owns all sessions.

    A guest dies with the thread that has started it (die_with_parent). So a single thread
    that never ends starts all guests. It also ends the guests that no page uses any more.
    """

    def __init__(self, setup_of, guests, grace):
        self.setup_of, self.guests, self.grace = setup_of, guests, grace
        self.sessions, self.lock, self.over = {}, threading.Lock(), False
        self.asked = queue.Queue()  # queues, where a new session or an error goes
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while not self.over:
            try:
                self.asked.get(timeout=0.5).put(self.begin())
            except queue.Empty:
                pass
            self.drop([s for s in list(self.sessions.values()) if s.is_left(self.grace)])

    def begin(self):
        if len(self.sessions) >= self.guests:
            return Refused(503, f"there are {self.guests} guests already; close a page")
        try:
            session = Session(self.setup_of)
        except (GuestError, OSError) as error:
            return Refused(500, str(error))
        self.sessions[session.name] = session
        return session

    def drop(self, some):
        for session in some:
            with self.lock:
                known = self.sessions.pop(session.name, None)
            if known:
                session.stop()

    def close(self):
        self.over = True
        self.drop(list(self.sessions.values()))

    def of(self, name):
        session = self.sessions.get(name)
        if not session:
            raise Refused(404, "this guest has ended; load the page again")
        return session

    def start(self):
        told = queue.Queue()
        self.asked.put(told)
        session = told.get(timeout=START_S)
        if isinstance(session, Refused):
            raise session
        return session


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def task_of(lab):
    """Return the name and the text of the document that a page shows first."""
    if not lab:
        return (
            "docs/none.md",
            "# The console\n\nType `help`, choose a lab above, or begin "
            "with [a first hour](tour.md).",
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
    if path.startswith(listing.HIDDEN) and not path.endswith(".pml"):
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


# ---- the requests of a page


def ask_lab(_desk, query, _body):
    lab = Lab(query.get("lab", ""))
    if lab.name:
        grade.begin(lab.name, lab.folder)
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
    now = text_of(path)
    if body.get("was") not in (now, None) and now != body["text"]:
        raise Refused(409, "the file was changed elsewhere; save again to replace that")
    with open(path, "w", encoding="utf-8") as file:
        file.write(body["text"])
    return {"saved": len(body["text"])}


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
    return sonde("grade", "--progress", lab.name, lab.folder, *again)


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
        "functions": listing.image().functions() + in_modules,
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


def load_of(query):
    """The workload that the page has chosen."""
    return one_line(query, "run") if query.get("run") else DEFAULT_LOAD


def ask_record(desk, query, _body):
    session = desk.of(query.get("id"))
    return session.record(one_line(query, "place"), load_of(query))


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


ASKED = {
    "lab": ask_lab,
    "start": ask_start,
    "functions": ask_functions,
    "function": ask_function,
    "counts": ask_counts,
    "path": ask_path,
    "threads": ask_threads,
    "command": ask_command,
    "question": ask_question,
    "answer": ask_answer,
    "file": ask_file,
    "films": ask_films,
    "record": ask_record,
    "leave": ask_leave,
    "read": ask_read,
    "save": ask_save,
    "load": ask_load,
    "grade": ask_grade,
}


def handler_class(desk, token):
    class Handler(websocketproxy.ProxyRequestHandler):
        """Serves one request, or the WebSocket of one console."""

        def check(self):
            """Raise Refused if the request does not come from one of our pages."""
            host = self.headers.get("Host", "")
            origin = self.headers.get("Origin")
            if origin and urllib.parse.urlsplit(origin).netloc != host:
                raise Refused(403, "a page of another site may not do this")
            if token:
                if not hmac.compare_digest(self.query().get("token", ""), token):
                    raise Refused(403, "the token is missing or wrong")
            elif host.rsplit(":", 1)[0] not in LOCAL:
                raise Refused(403, "this server is for its own machine only")

        def query(self):
            parts = urllib.parse.urlsplit(self.path)
            return dict(urllib.parse.parse_qsl(parts.query, errors="replace"))

        def name(self):
            return urllib.parse.urlsplit(self.path).path.strip("/")

        def answer(self, status, data, kind):
            self.head(status, kind, len(data))
            if self.command != "HEAD":
                self.wfile.write(data)

        def head(self, status, kind, length=None):
            """Send the head of an answer. Without a length, its end closes the line."""
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if length is None:
                self.send_header("Connection", "close")
            else:
                self.send_header("Content-Length", str(length))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Frame-Options", "DENY")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()

        def stream(self, parts):
            """Answer with a line of JSON for each of @parts, as it comes."""
            self.close_connection = True
            with contextlib.closing(parts):
                self.head(200, "application/x-ndjson")
                for part in parts:
                    self.wfile.write(json.dumps(part).encode() + b"\n")
                    self.wfile.flush()

        def refuse(self, error):
            self.close_connection = True
            data = json.dumps({"error": str(error)}).encode()
            self.answer(error.status, data, "application/json")

        def do_GET(self):
            try:
                if self.name() in STATIC:  # these files are not secret: no check
                    path = STATIC[self.name()]
                    with open(path, "rb") as file:
                        self.answer(200, file.read(), KINDS[os.path.splitext(path)[1]])
                    return
                self.check()
                if self.name():
                    raise Refused(404, "there is no such page")
                page = text_of(PAGE).replace("<!-- player -->", film_page.PLAYER)
                self.answer(200, page.encode(), KINDS[".html"])
            except Refused as error:
                self.refuse(error)

        do_HEAD = do_GET

        def do_POST(self):
            try:
                self.check()
                if self.name() not in ASKED:
                    raise Refused(404, "there is no such thing to ask for")
                data = ASKED[self.name()](desk, self.query(), self.body())
                if isinstance(data, dict):
                    self.answer(200, json.dumps(data).encode(), "application/json")
                else:
                    self.stream(data)
            except Refused as error:
                self.refuse(error)
            except ConnectionError:
                self.refuse(Refused(500, "the guest has ended"))
            except (SondeError, OSError) as error:
                self.refuse(Refused(500, str(error)))

        def body(self):
            length = self.headers.get("Content-Length", "0")
            if not length.isdigit() or int(length) > BODY_MAX:
                raise Refused(413, f"more than {BODY_MAX} bytes")
            try:
                body = json.loads(self.rfile.read(int(length)) or b"{}")
            except ValueError:
                raise Refused(400, "no JSON") from None
            if not isinstance(body, dict) or not isinstance(body.get("text", ""), str):
                raise Refused(400, "no object with a text")
            return body

        def handle_upgrade(self):
            try:
                self.check()
                desk.of(self.query().get("id"))
            except Refused as error:
                self.refuse(error)
                return
            super().handle_upgrade()

        def new_websocket_client(self):
            try:
                session = desk.of(self.query().get("id"))
                line = session.connect()
            except (Refused, OSError):
                raise self.CClose(1011, "this guest has ended") from None
            try:
                self.do_proxy(line)
            except ConnectionError:
                pass
            finally:
                session.leave(line)
                line.close()

        def log_message(self, format, *args):
            pass

    return Handler


class Server(websocketproxy.LibProxyServer):
    """Has a thread for each request. A lost connection is normal, and is not reported."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(options, setup_of, say):
    """Serve pages until Ctrl-C."""
    desk = Desk(setup_of, options.guests, options.grace)
    handler = handler_class(desk, options.token)
    server = Server(
        RequestHandlerClass=handler,
        heartbeat=30,
        listen_host=options.bind,
        listen_port=options.port,
    )
    more = f"?token={urllib.parse.quote(options.token)}" if options.token else ""
    say(f"http://{options.bind}:{server.server_address[1]}/{more}   Ctrl-C ends it")
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        desk.close()
        server.server_close()

"""web.py - `./sonde web`: the server. A page load starts a guest, whose console goes through
a WebSocket, by Debian's websockify.

Without a token, the server serves only this machine, and only pages that came from this
server (Host and Origin): a page of another site must not type into a guest. With a token,
the server serves any machine that knows the token.
"""

import contextlib
import hmac
import json
import os
import socket
import subprocess
import sys
import urllib.parse

from probes.film.host import page as film_page
from kernel.console.web.asked import ASKED
from kernel.console.web.guests import Desk, Refused, text_of
from sonde.building import HostError, must_have_room
from sonde.errors import PROGRAM_FAILED, SondeError, words_of, writing
from sonde.guest import BUILD, ROOT

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
STATIC = {  # name: path of the files that the page loads
    os.path.basename(path): path
    for path in (
        *(os.path.join(HERE, name) for name in os.listdir(HERE)),
        os.path.join(ROOT, "probes/film/host/film.js"),
        os.path.join(MODULES, "marked/lib/marked.umd.js"),
        os.path.join(MODULES, "@xterm/xterm/lib/xterm.js"),
        os.path.join(MODULES, "@xterm/xterm/css/xterm.css"),
        os.path.join(MODULES, "@xterm/addon-fit/lib/addon-fit.js"),
        os.path.join(MODULES, "codemirror/lib/codemirror.js"),
        os.path.join(MODULES, "codemirror/lib/codemirror.css"),
        os.path.join(MODULES, "codemirror/addon/mode/simple.js"),
        os.path.join(MODULES, "codemirror/mode/clike/clike.js"),
    )
    if path.endswith((".js", ".css"))
}
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
}
LOCAL = ("127.0.0.1", "localhost", "[::1]")
# The browser runs only the scripts of STATIC, and no script in a document.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
BODY_MAX = 1 << 20


def install():
    """Install the page's packages from npm, which tells of its errors itself."""
    if all(os.path.exists(path) for path in STATIC.values()):
        return
    folder = os.path.dirname(MODULES)
    os.makedirs(folder, exist_ok=True)
    words = "npm install --loglevel=error --no-fund --no-audit --no-save --prefix".split()
    names = [f"{name}@{version}" for name, version in PACKAGES.items()]
    words += [folder, *names]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:
        must_have_room(folder)
        raise HostError("npm does not install what the page needs; it takes a network")


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
                given = os.fsencode(self.query().get("token", ""))
                if not hmac.compare_digest(given, os.fsencode(token)):
                    raise Refused(403, "the token is missing or wrong")
            elif host.rsplit(":", 1)[0] not in LOCAL:
                raise Refused(403, "this server is for its own machine only")

        def query(self):
            parts = urllib.parse.urlsplit(self.path)
            return dict(urllib.parse.parse_qsl(parts.query, errors="surrogateescape"))

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

        @contextlib.contextmanager
        def refusing(self):
            try:
                yield
            except Refused as error:
                self.refuse(error)
            except ConnectionError:
                self.refuse(Refused(500, "the guest has ended"))
            except (SondeError, OSError, *PROGRAM_FAILED) as error:
                self.refuse(Refused(500, words_of(error)))
            except ValueError as error:  # an address, a name or a number that is none
                self.refuse(Refused(400, str(error)))

        def do_GET(self):
            with self.refusing():
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

        do_HEAD = do_GET

        def do_POST(self):
            with self.refusing():
                self.check()
                if self.name() not in ASKED:
                    raise Refused(404, "there is no such thing to ask for")
                data = ASKED[self.name()](desk, self.query(), self.body())
                if isinstance(data, dict):
                    self.answer(200, json.dumps(data).encode(), "application/json")
                else:
                    self.stream(data)

        def body(self):
            length = self.headers.get("Content-Length", "0")
            if not length.isdigit() or int(length) > BODY_MAX:
                raise Refused(413, f"more than {BODY_MAX} bytes")
            try:
                body = json.loads(self.rfile.read(int(length)) or b"{}")
            except (ValueError, RecursionError):
                raise Refused(400, "no JSON") from None
            if not isinstance(body, dict) or not isinstance(body.get("text", ""), str):
                raise Refused(400, "no object with a text")
            return body

        def handle_upgrade(self):
            is_refused = True
            with self.refusing():
                self.check()
                desk.of(self.query().get("id"))
                is_refused = False
            if not is_refused:
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


def family_of(address):
    """Return the family of the sockets at which an address of this host is served."""
    found = [row[0] for row in socket.getaddrinfo(address or None, 0)]
    return socket.AF_INET if socket.AF_INET in found else found[0]


def serve(options, setup_of, say):
    """Serve pages until Ctrl-C."""
    desk = Desk(setup_of, options.guests, options.grace)
    handler = handler_class(desk, options.token)
    with writing(f"web --bind {options.bind} --port {options.port}"):
        Server.address_family = family_of(options.bind)
        server = Server(
            RequestHandlerClass=handler,
            heartbeat=30,
            listen_host=options.bind,
            listen_port=options.port,
        )
    more = urllib.parse.quote(os.fsencode(options.token))
    more = f"?token={more}" if options.token else ""
    host = f"[{options.bind}]" if ":" in options.bind else options.bind
    say(f"http://{host}:{server.server_address[1]}/{more}   Ctrl-C ends it")
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        desk.close()
        server.server_close()

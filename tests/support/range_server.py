"""A web server on loopback for tests of downloads. Serves the files of a folder, each under several manners:

/good/NAME    ranges are honoured
/plain/NAME   ranges are ignored
/flaky/NAME   every answer breaks off after half of what it promised
/busy/NAME    the first answer is 503, the others as /good/

With no manner before it a name is served as /good/. Prints its port, then a line for each request to FOLDER.log:
the path and the range that was asked for.
"""

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder = Path(sys.argv[1])
log = Path(sys.argv[1] + ".log")
seen = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status):
        page = b"<html>an error page that must not end up in a file</html>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_GET(self):
        asked = self.headers.get("Range", "")
        with log.open("a") as lines:
            lines.write(f"{self.path} {asked}\n")
        first_time = self.path not in seen
        seen.add(self.path)
        manner, _, name = self.path.lstrip("/").partition("/")
        if manner not in ("good", "plain", "flaky", "busy"):
            manner, name = "good", self.path.lstrip("/")
        if manner == "busy" and first_time:
            return self.refuse(503)
        path = folder / name
        if not path.is_file():
            return self.refuse(404)
        self.answer(path.read_bytes(), asked, manner)

    def answer(self, data, asked, manner):
        begin = 0
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        if match and manner != "plain":
            begin = int(match[1])
            if begin >= len(data):
                return self.refuse(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        rest = data[begin:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if manner == "flaky" and len(rest) > 1:
            self.wfile.write(rest[: len(rest) // 2])
            self.close_connection = True
        else:
            self.wfile.write(rest)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()

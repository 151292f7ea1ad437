"""A customer's server, at a public address that `.ci/deploy` gives to this machine. It keeps the events it gets."""

import contextlib
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

ADDRESS = "93.184.215.14"


@contextlib.contextmanager
def receiver(authority: Path):
    """Its address, and path, headers and body of each event. It writes the certificate that vouches for it."""
    events: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Takes an event."""
            body = self.rfile.read(int(self.headers["content-length"]))
            events.append((self.path, dict(self.headers), body))
            self.send_response_only(204)
            self.end_headers()

    issuer, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert(ADDRESS).configure_cert(tls)
    issuer.cert_pem.write_to_path(authority)
    with ThreadingHTTPServer((ADDRESS, 443), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://{ADDRESS}", events
        server.shutdown()

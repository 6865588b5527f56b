"""Azure's metadata service around one command: `cloud_service.py LOG COMMAND...`.

For a network name space of its own, which has the link-local address on its loopback device. The
requests are kept in LOG, a line each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

LOG: Final = Path(sys.argv[1])
DISK: Final = {
    "name": "os",
    "diskSizeGB": "32",
    "managedDisk": {"storageAccountType": "Premium_LRS"},
}
COMPUTE: Final = {
    "vmSize": "Standard_D8s_v5",
    "location": "westeurope",
    "storageProfile": {"osDisk": DISK, "dataDisks": []},
}


class Service(BaseHTTPRequestHandler):
    """Answers every question alike."""

    def do_GET(self) -> None:
        """The machine's description."""
        with LOG.open("a", encoding="utf-8") as log:
            log.write(f"{self.path}\n")
        body = json.dumps(COMPUTE).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


if __name__ == "__main__":
    server = HTTPServer(("169.254.169.254", 80), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)

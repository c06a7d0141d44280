"""A server of the test's own, for behaviour that options switch on or that a restart shows."""

import os
import signal
import subprocess

import pytest

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
READY = {
    "Table": "Table service is successfully listening at ",
    "Queue": "Queue service is successfully listening at ",
}
ADMIN_READY = "Explorer and metrics at "


class OwnServer:
    def __init__(self, location, *options, with_admin=False):
        program = os.environ.get("LAZULITE_SERVER")
        if not program:
            pytest.skip("LAZULITE_SERVER names the server's program; `cargo xtask test` sets it")
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}
        command = [program, "serve", "--location", str(location), "--tablePort", "0", "--queuePort", "0"]
        # A silent server does not tell where its admin port is.
        admin = ["--admin-port", "0"] if with_admin else ["--no-admin", "--silent"]
        self.process = subprocess.Popen(
            [*command, *admin, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.endpoints = {}
        self.admin = None
        while len(self.endpoints) < len(READY) or (with_admin and not self.admin):
            line = self.process.stdout.readline()
            assert line, "the server ended before it was ready"
            if ADMIN_READY in line:
                self.admin = line.split(ADMIN_READY)[1].strip().rstrip("/")
            for service, words in READY.items():
                if words in line:
                    self.endpoints[service] = f"{line.split(words)[1].strip().rstrip('/')}/{ACCOUNT}"

    @property
    def connection_string(self):
        endpoints = "".join(f"{service}Endpoint={url};" for service, url in self.endpoints.items())
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};{endpoints}"

    def stop(self):
        """As an operator does: what the server has measured is written."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()

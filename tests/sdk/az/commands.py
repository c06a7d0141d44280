"""Runs `az` the way its shell script does: `__main__` in a process of its own, JSON on standard output, messages on
standard error.

A command spends most of its time on imports. Where the system can fork, this process imports once and each command is a
fork. Elsewhere each command is a new interpreter.
"""

import contextlib
import importlib
import json
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile

CONNECTION_STRING = os.environ.get("LAZULITE_CONNECTION_STRING")

COMMAND_TIMEOUT_SECONDS = 120

# On import `az` remembers the standard streams. A fork keeps these objects and redirects their file descriptors.
STREAMS = open(1, "w", encoding="utf-8", closefd=False), open(2, "w", encoding="utf-8", closefd=False)


class Refused(Exception):
    """A failed command: its exit status and its output on standard error."""

    def __init__(self, status, text):
        super().__init__(f"exit status {status}: {text}")
        self.status = status
        self.text = text


def run(*arguments, **environment):
    words = ["storage", *arguments, "--output", "json", "--only-show-errors"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AZURE_STORAGE")}
    start = _in_a_fork if hasattr(os, "fork") else _in_an_interpreter
    status, output, errors = start(words, {**variables, **environment})
    if status != 0:
        raise Refused(status, errors)
    return json.loads(output) if output.strip() else None


def load():
    """Imports the modules that a command imports, so that forks already have them."""
    listing = (
        "import atexit, runpy, sys; atexit.register(lambda: print(chr(10), *sys.modules));"
        "runpy.run_module('azure.cli', run_name='__main__')"
    )
    command = [sys.executable, "-c", listing, "storage", "table", "list", "--connection-string", CONNECTION_STRING]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMMAND_TIMEOUT_SECONDS)
    with contextlib.redirect_stdout(STREAMS[0]), contextlib.redirect_stderr(STREAMS[1]):
        for name in listed.stdout.splitlines()[-1].split():
            if name.startswith("azure."):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)


def _in_an_interpreter(words, environment):
    command = [sys.executable, "-m", "azure.cli", *words]
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS
    )
    return finished.returncode, finished.stdout, finished.stderr


def _in_a_fork(words, environment):
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become_az(words, environment, output, errors)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
        return os.waitstatus_to_exitcode(status), *texts


def _become_az(words, environment, output, errors):
    status = 1
    try:
        signal.alarm(COMMAND_TIMEOUT_SECONDS)
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = STREAMS
        # `az` writes no log when the root logger has handlers, and pytest has added some.
        logging.getLogger().handlers.clear()
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["az", *words]
        runpy.run_module("azure.cli", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not `sys.exit`: this process is a copy of pytest, which must not continue here.
        os._exit(status)

"""End a run by SIGKILL before its n-th call of what changes something on disk."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

STEPS = ("open", "chmod", "replace", "symlink", "unlink", "mkdir", "rmdir")  # of module os


def killed_before(step: int, run: Callable[[], object]) -> bool:
    """Run in a child and kill it before its n-th step. True if it was killed; a run that fails is an error."""
    with tempfile.TemporaryDirectory() as scratch:  # what a killed run leaves in its temporary folder goes with this one
        child = os.fork()
        if not child:
            code = 1
            with contextlib.suppress(BaseException):
                tempfile.tempdir = scratch
                die_before(step)
                run()
                code = 0
            os._exit(code)
        _, code = os.waitpid(child, 0)
    assert os.WIFSIGNALED(code) or os.WEXITSTATUS(code) == 0
    return os.WIFSIGNALED(code)


def die_before(step: int, places: Iterable[tuple[Any, str]] = tuple((os, name) for name in STEPS)) -> None:
    """SIGKILL this process before its n-th call of these, each a module and a name in it."""
    left = [step]

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **keywords: object) -> object:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return call

    for module, name in places:
        setattr(module, name, counted(getattr(module, name)))

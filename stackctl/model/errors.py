"""The one error type that a command prints without a traceback."""

from __future__ import annotations


class StackctlError(Exception):
    """Bad input or a refused action: what happened, where, and what to do.

    Ends a command with exit code 2 (could not judge, or bad usage).
    """

    def __init__(self, message: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text

"""What goes wrong, as exceptions."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Iterable, NamedTuple


class Diagnostic(NamedTuple):
    """One mistake in a scenario. What is not known is empty; `line` is then 0."""

    file: str
    line: int
    path: str
    """JSON pointer: "/training/schedule"."""
    message: str
    hint: str
    """What to write instead."""


class ScenarioError(ValueError):
    """Tells every mistake of a scenario at once: its text has one line for each."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, diagnostics: Iterable[tuple] = ()):
        super().__init__(message)
        self.diagnostics = [Diagnostic(*one) for one in diagnostics]

    def __reduce__(self):
        return type(self), (str(self), self.diagnostics)


class InternalError(RuntimeError):
    """Tells a mistake of interlock itself, which should be reported."""


for _public in (Diagnostic, ScenarioError, InternalError):
    _public.__module__ = "interlock"  # as tracebacks show them

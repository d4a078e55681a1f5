"""Scenarios as users give them, as texts that the library takes."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import json
import os
from typing import Any, Callable, Mapping, Optional, Union

from . import _core

Scenario = Union[Mapping[str, Any], str, "os.PathLike[str]", "HasScenario"]
"""A dict, a path, a JSON text, or an object with a `scenario`, such as FoundPlan and Schedule."""

Progress = Optional[Callable[[int, int], Any]]
"""Called with how much is done, and of how much. What it raises ends the call."""


class HasScenario:
    """Has a scenario as JSON, which simulate() takes."""

    scenario_json: str

    @property
    def scenario(self) -> dict[str, Any]:
        """Returns the scenario as a dict, whose keys are those of scenario files."""
        if not self.scenario_json:
            raise ValueError("there is no plan, and so no scenario; `problem` says why")
        return json.loads(self.scenario_json)


def json_of(value: Any) -> str:
    """Returns `value` as JSON; arrays and numbers of NumPy and pandas as lists and numbers."""
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (range, set, frozenset)):
        return list(value)
    raise TypeError(
        f"{value!r} is no value of a scenario; expected a number, a text, True, False, None, a list"
        " or a dict"
    )


def text_and_file(scenario: Scenario) -> tuple[str, str]:
    """Returns the text of a scenario, and its file in messages; "": it has none.

    Raises: FileNotFoundError, TypeError.
    """
    if isinstance(scenario, Mapping):
        return json_of(scenario), ""
    if hasattr(scenario, "scenario_json"):
        return scenario.scenario_json, ""
    if isinstance(scenario, str) and "{" in scenario:
        return scenario, ""
    if not isinstance(scenario, (str, os.PathLike)):
        raise TypeError(
            f"a scenario of type {type(scenario).__name__}; expected a dict, the path of a JSON"
            " file, or its text"
        )
    path = os.fspath(scenario)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT,
            "no such file; expected a dict, the path of a JSON file, or its text",
            path,
        ) from None


def request(
    scenario: Scenario, settings: Mapping[str, Any], **given: Any
) -> tuple[str, _core.Options]:
    """Returns a scenario and options as the library takes them."""
    text, file = text_and_file(scenario)
    return text, options(settings, file, **given)


def options(
    settings: Mapping[str, Any], file: str = "", progress: Progress = None, **given: Any
) -> _core.Options:
    """Returns options of the library: {"parallel__pipeline": 8} is "parallel.pipeline=8"."""
    texts = [f"{key.replace('__', '.')}={json_of(value)}" for key, value in settings.items()]
    made = _core.Options(file, texts, progress)
    for name, value in given.items():
        setattr(made, name, value)
    return made


def settings_of(texts: list[str]) -> dict[str, Any]:
    """Returns ["parallel.pipeline=8"] as {"parallel.pipeline": 8}."""
    settings = {}
    for text in texts:
        path, _, value = text.partition("=")
        try:
            settings[path] = json.loads(value)
        except ValueError:
            settings[path] = value
    return settings

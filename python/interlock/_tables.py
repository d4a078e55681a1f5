"""Tables: of pandas, and of HTML for notebooks."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import html
from typing import Any, Iterable, Sequence


def need_pandas():
    """Returns the module pandas. Raises: ModuleNotFoundError that says how to get it."""
    try:
        import pandas
    except ModuleNotFoundError as missing:
        if missing.name != "pandas":
            raise
        raise ModuleNotFoundError(
            "tables are DataFrames of pandas, which is not installed; type: pip install pandas",
            name="pandas",
        ) from None
    return pandas


def table_html(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table, which notebooks colour as they colour theirs."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(word_of(cell))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def word_of(value: Any) -> str:
    """Returns a value as tables show it: numbers with four digits, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)

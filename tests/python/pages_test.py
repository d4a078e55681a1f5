"""docs/python.md and examples/what-if.ipynb say what the package does."""

# SPDX-License-Identifier: Apache-2.0
import doctest
import os
import re

import pytest

import interlock
from conftest import SOURCE

NOTEBOOK = SOURCE / "examples" / "what-if.ipynb"


def test_what_the_page_shows_is_what_python_prints(pandas, monkeypatch, tmp_path):
    monkeypatch.chdir(SOURCE)
    text = (SOURCE / "docs" / "python.md").read_text()
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    test = doctest.DocTestParser().get_doctest(examples, {}, "docs/python.md", None, 0)
    assert len(test.examples) > 20
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.fixture
def executed(pandas):
    """The notebook, run again."""
    for package in ("nbconvert", "ipykernel", "matplotlib"):
        pytest.importorskip(package, reason=f"the notebook; install python3-{package} to run it")
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(SOURCE / "examples")}}
    ExecutePreprocessor(timeout=3600, kernel_name="python3").preprocess(notebook, resources)
    return notebook


def tables(notebook):
    """Returns the numbers of tables and texts, to three digits; times that it took left out."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [one.get("data", {"text/plain": one.get("text", "")})["text/plain"] for one in outputs]
    texts = [text for text in shown if not text.startswith("<")]  # <Picture: 90548 bytes ...>
    return [[f"{float(number):.3g}" for number in re.findall(r"\d+\.\d+", text)] for text in texts]


def test_the_notebook_runs_and_shows_what_it_says(executed):
    import nbformat

    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    if os.environ.get("UPDATE_PAGES"):
        nbformat.write(executed, NOTEBOOK)
    assert tables(executed) == tables(nbformat.read(NOTEBOOK, as_version=4))

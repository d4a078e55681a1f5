"""Results: their numbers, tables and pictures."""

# SPDX-License-Identifier: Apache-2.0
import html.parser
import json
import re
import xml.dom.minidom

import pytest

import interlock
from conftest import SOURCE, without_time

EXAMPLES = SOURCE / "scenarios" / "examples"


def test_a_result_is_what_the_program_writes(scenario, program):
    step = interlock.simulate(scenario, parallel__pipeline=4, parallel__data=2)
    layout = ["--set", "parallel.pipeline=4", "--set", "parallel.data=2"]
    written = program("simulate", scenario, *layout)
    assert without_time(step.to_dict()) == without_time(written)
    assert step.step_time_s == written["step_time_s"]
    assert step.mfu == written["utilisation"]["mfu"]
    assert step.peak_memory_bytes == max(one["peak_memory_bytes"] for one in written["devices"])
    assert step.fits_in_memory is True and isinstance(step.tasks, int)


def test_a_dict_a_text_a_path_and_a_text_with_comments_are_the_same_scenario():
    path = EXAMPLES / "four-equal-stages.json"
    text = path.read_text()
    plain = json.loads(re.sub("//.*", "", text))  # scenarios may have comments
    assert len({interlock.simulate(way).step_time_s for way in (path, str(path), text, plain)}) == 1
    assert interlock.simulate(path).name == "four equal stages, 3-wise"


def test_paths_in_a_file_start_at_its_folder(scenario, tmp_path, monkeypatch):
    inside = tmp_path / "a folder"
    inside.mkdir()
    zoo = (SOURCE / "models" / "zoo" / "gpt2-xl.json").read_text()
    (inside / "own.json").write_text(zoo)
    (inside / "scenario.json").write_text(json.dumps({**scenario, "model": "./own.json"}))
    monkeypatch.chdir(tmp_path)
    assert interlock.check(inside / "scenario.json") == 1
    with pytest.raises(interlock.ScenarioError):
        interlock.check({**scenario, "model": "./own.json"})


def test_keywords_set_what_dotted_paths_do(scenario):
    one = interlock.simulate(scenario, parallel__pipeline=8, parallel__data=1)
    other = interlock.simulate(scenario, **{"parallel.pipeline": 8, "parallel.data": 1})
    whole = interlock.simulate(scenario, parallel={"pipeline": 8, "data": 1})
    assert one.step_time_s == other.step_time_s == whole.step_time_s
    assert scenario["parallel"] == {"data": 8}


def test_numbers_of_numpy_are_numbers(scenario):
    numpy = pytest.importorskip("numpy", reason="numbers of NumPy; install python3-numpy to run it")
    one = interlock.simulate(scenario, training__micro_batch_size=numpy.int64(2))
    assert one.step_time_s == interlock.simulate(scenario, training__micro_batch_size=2).step_time_s


def test_every_metric_is_an_attribute_with_a_unit(scenario):
    step = interlock.simulate(scenario)
    shown = dir(step)
    units = {"s": "_s", "bytes": "_bytes", "J": "_j", "W": "_w", "1/s": "_per_s"}
    for metric in interlock.metrics():
        assert metric.key in shown
        words = getattr(interlock.Result, metric.key).__doc__
        assert metric.unit in words or metric.unit == "truth"
        getattr(step, metric.key)
        assert metric.unit not in units or units[metric.unit] in metric.key, metric
    own = [name for name in vars(interlock.Result) if not name.startswith("_")]
    assert not set(own) & {metric.key for metric in interlock.metrics()}


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(scenario):
    with pytest.raises(AttributeError, match="did you mean step_time_s"):
        interlock.simulate(scenario).step_time


def test_a_timeline_has_every_op_once(pandas, scenario):
    step = interlock.simulate(scenario, parallel__pipeline=8, parallel__data=1)
    timeline = step.timeline()
    keys = ["rank", "op", "stage", "micro_batch", "slice", "start_s", "end_s", "exposed_s"]
    assert list(timeline.columns) == keys
    done = timeline[timeline.op.isin(["F", "B"])]
    assert not done.duplicated(["rank", "op", "stage", "micro_batch"]).any()
    assert (done.groupby("rank", observed=True).size() % (2 * 64) == 0).all()
    assert (timeline.end_s >= timeline.start_s).all()
    for _, rank in timeline.groupby("rank"):
        assert (rank.start_s.to_numpy()[1:] >= rank.end_s.to_numpy()[:-1] - 1e-12).all()
    assert timeline.end_s.max() == pytest.approx(step.makespan_s)


def test_memory_over_time_peaks_where_the_devices_say(pandas, scenario):
    step = interlock.simulate(scenario, parallel__pipeline=4, parallel__data=2)
    peaks = step.memory().groupby("rank").memory_bytes.max()
    devices = step.devices().set_index("rank")
    assert peaks.to_dict() == pytest.approx(devices.peak_memory_bytes.to_dict())
    shares = devices.filter(like="time_shares.").sum(axis="columns")
    assert shares.to_numpy() == pytest.approx(1)
    assert len(step.links()) > 0


def test_without_a_timeline_a_result_says_what_to_type(scenario):
    step = interlock.simulate(scenario, timeline=False)
    for ask in (step.plot, step.report_html):
        with pytest.raises(ValueError, match="timeline=True"):
            ask()
    assert "<img" not in step._repr_html_()


class Tags(html.parser.HTMLParser):
    """Collects the names of elements, and refuses one that is left open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_notebooks_get_pieces_that_touch_nothing_else_of_their_page(scenario):
    step = interlock.simulate({**scenario, "name": "<b>&\"'"})
    page = step._repr_html_()
    assert Tags(page).seen <= {"pre", "img"}
    assert "<b>" not in page and "&lt;b&gt;&amp;" in page
    assert Tags(step.plot()._repr_html_()).seen == {"img"}
    xml.dom.minidom.parseString(step.plot().svg)
    found = interlock.search(scenario, search={"tensor": 1, "recompute": "none", "zero_stage": 0})
    allowed = set("table thead tbody tr th td p".split())
    assert {"table", "td"} <= Tags(found._repr_html_()).seen <= allowed


def test_pictures_and_pages_are_written(scenario, tmp_path):
    step = interlock.simulate(scenario)
    step.plot().save(tmp_path / "a picture.svg")
    assert (tmp_path / "a picture.svg").read_text().startswith("<svg")
    page = interlock.report_html([step, step], tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page and page.rstrip().endswith("</html>")


def test_nothing_is_printed(scenario, capfd):
    step = interlock.simulate(scenario)
    repr(step), str(step), step._repr_html_()
    with pytest.raises(interlock.ScenarioError):
        interlock.simulate(scenario, parallel__pipline=1)
    assert capfd.readouterr() == ("", "")


def test_an_expression_of_a_result_is_one_line_and_its_text_the_programs_table(scenario):
    step = interlock.simulate(scenario)
    assert "\n" not in repr(step) and f"step_time_s={step.step_time_s:.4g}" in repr(step)
    assert "Step time" in str(step)

// interlock._core: what the Python package interlock calls of libinterlock.
// SPDX-License-Identifier: Apache-2.0
//
// The package says what users see; here texts go in, and numbers and texts come out. Python's lock
// is given back while the library computes; progress and looks for Ctrl-C take it again.
#include <interlock/interlock.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace py = pybind11;

namespace {

using namespace interlock;

/// Returns what `work` returns, done without Python's lock.
template <class Work>
auto unlocked(const Work& work) -> decltype(work()) {
  const py::gil_scoped_release released;
  return work();
}

// --- Errors ------------------------------------------------------------------------------------

void set_error(const char* type, const py::tuple& arguments) {
  const py::object kind = py::module_::import("interlock._errors").attr(type);
  PyErr_SetObject(kind.ptr(), kind(*arguments).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    py::list diagnostics;
    for (const Diagnostic& one : error.diagnostics()) {
      diagnostics.append(py::make_tuple(one.file, one.line, one.path, one.message, one.hint));
    }
    set_error("ScenarioError", py::make_tuple(error.what(), diagnostics));
  } catch (const InternalError& error) {
    set_error("InternalError", py::make_tuple(error.what()));
  }
}

// --- Options -----------------------------------------------------------------------------------

/// Returns a callback for `told`, a function of Python's; none for None.
std::function<void(std::size_t, std::size_t)> progress_of(const py::object& told) {
  if (told.is_none()) return {};
  // Copies are made and dropped without Python's lock, under which alone objects are counted.
  const auto shared = std::make_shared<py::object>(told);
  return [shared](std::size_t done, std::size_t of) {
    const py::gil_scoped_acquire locked;
    (*shared)(done, of);
  };
}

/// Ends a call where Ctrl-C was pressed.
void look_for_signals() {
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

Options make_options(std::string file, std::vector<std::string> set, const py::object& progress) {
  return {.file = std::move(file),
          .set = std::move(set),
          .progress = progress_of(progress),
          .poll = look_for_signals};
}

// --- Tables, as columns ------------------------------------------------------------------------

/// Returns column `member` of `rows` as an array of `To`.
template <class To, class Row, class Member>
py::array_t<To> column(const std::vector<Row>& rows, Member Row::*member) {
  py::array_t<To> values(static_cast<py::ssize_t>(rows.size()));
  To* to = values.mutable_data();
  for (const Row& row : rows) *to++ = static_cast<To>(row.*member);
  return values;
}

/// Returns columns of numbers; letters as their codes.
py::dict timeline_of(const Result& result) {
  const std::vector<Span> spans = unlocked([&] { return result.timeline(); });
  py::dict columns;
  columns["rank"] = column<int>(spans, &Span::rank);
  columns["op"] = column<std::uint8_t>(spans, &Span::op);
  columns["stage"] = column<int>(spans, &Span::stage);
  columns["micro_batch"] = column<int>(spans, &Span::micro_batch);
  columns["slice"] = column<int>(spans, &Span::slice);
  columns["start_s"] = column<double>(spans, &Span::start_s);
  columns["end_s"] = column<double>(spans, &Span::end_s);
  columns["exposed_s"] = column<double>(spans, &Span::exposed_s);
  return columns;
}

py::dict memory_of(const Result& result) {
  const std::vector<MemoryPoint> points = unlocked([&] { return result.memory(); });
  py::dict columns;
  columns["rank"] = column<int>(points, &MemoryPoint::rank);
  columns["time_s"] = column<double>(points, &MemoryPoint::time_s);
  columns["memory_bytes"] = column<double>(points, &MemoryPoint::bytes);
  return columns;
}

/// Returns the paths, the values of each row as JSON, its error, and its numbers (rows, metrics);
/// NaN: unknown.
py::tuple sweep_table(const std::string& text, const Options& options) {
  const SweepResult swept = unlocked([&] { return sweep(text, options); });
  const std::size_t rows = swept.rows.size(), width = metrics().size();
  py::list values, errors;
  py::array_t<double> numbers({rows, width});
  double* to = numbers.mutable_data();
  for (const SweepRow& row : swept.rows) {
    values.append(row.values);
    errors.append(row.error);
    for (std::size_t i = 0; i < width; ++i) {
      const bool known = i < row.metrics.size() && row.metrics[i];
      *to++ = known ? *row.metrics[i] : std::numeric_limits<double>::quiet_NaN();
    }
  }
  return py::make_tuple(swept.paths, values, errors, numbers);
}

// --- Answers, as dictionaries with the names of the header --------------------------------------

py::dict plan_of(const FoundPlan& plan) {
  py::dict fields;
  fields["words"] = plan.words;
  fields["scenario_json"] = plan.scenario;
  fields["step_time_s"] = plan.step_time_s;
  fields["peak_memory_bytes"] = plan.peak_memory_bytes;
  fields["tokens_per_s_per_device"] = plan.tokens_per_s_per_device;
  fields["mfu"] = plan.mfu;
  fields["energy_j"] = plan.energy_j;
  fields["worth_having"] = plan.worth_having;
  return fields;
}

py::tuple search_plans(const std::string& text, const Options& options) {
  const SearchResult found = unlocked([&] { return search(text, options); });
  py::list plans;
  for (const FoundPlan& plan : found.plans) plans.append(plan_of(plan));
  return py::make_tuple(plans, found.json);
}

py::dict row_of(const PlanRow& row) {
  py::dict fields;
  fields["machine"] = row.machine;
  fields["devices"] = row.devices;
  fields["fits"] = row.fits;
  fields["problem"] = row.problem;
  fields["words"] = row.words;
  fields["scenario_json"] = row.scenario;
  fields["time_s"] = row.fits ? std::optional(row.time_s) : std::nullopt;
  fields["device_hours"] = row.fits ? std::optional(row.device_hours) : std::nullopt;
  fields["goodput"] = row.fits ? std::optional(row.goodput) : std::nullopt;
  fields["cost"] = row.cost;
  fields["energy_j"] = row.energy_j;
  fields["on_front"] = row.on_front;
  return fields;
}

py::tuple plan_training(const PlanQuestion& question, const Options& options) {
  const PlanResult planned = unlocked([&] { return plan(question, options); });
  py::list rows;
  for (const PlanRow& row : planned.rows) rows.append(row_of(row));
  return py::make_tuple(rows, planned.ranking, planned.recommendation, planned.json);
}

py::tuple explain_step(const std::string& text, const Options& options) {
  const Explanation told = unlocked([&] { return explain(text, options); });
  py::list changes;
  for (const Change& change : told.changes) {
    py::dict fields;
    fields["words"] = change.words;
    fields["set_text"] = change.set;
    fields["step_time_s"] = change.step_time_s;
    fields["gain_s"] = change.gain_s;
    fields["peak_memory_bytes"] = change.peak_memory_bytes;
    fields["fits"] = change.fits;
    changes.append(fields);
  }
  return py::make_tuple(told.result, told.limited_by, changes, told.json);
}

// --- Schedules ---------------------------------------------------------------------------------

using OpTuple = std::tuple<char, int, int>;

std::vector<std::vector<OpTuple>> ops_of(const Schedule& schedule) {
  std::vector<std::vector<OpTuple>> ranks;
  for (const std::vector<Op>& ops : schedule.ranks) {
    ranks.emplace_back();
    for (const Op& op : ops) ranks.back().emplace_back(op.op, op.stage, op.micro_batch);
  }
  return ranks;
}

void set_ops(Schedule& schedule, const std::vector<std::vector<OpTuple>>& ranks) {
  schedule.ranks.clear();
  for (const std::vector<OpTuple>& ops : ranks) {
    schedule.ranks.emplace_back();
    for (const auto& [op, stage, micro_batch] : ops) {
      schedule.ranks.back().push_back({op, stage, micro_batch});
    }
  }
}

void bind_schedule(py::module_& module) {
  py::class_<StageCost>(module, "StageCost")
      .def(py::init<>())
      .def_readwrite("forward_s", &StageCost::forward_s)
      .def_readwrite("backward_input_s", &StageCost::backward_input_s)
      .def_readwrite("backward_weight_s", &StageCost::backward_weight_s)
      .def_readwrite("update_s", &StageCost::update_s)
      .def_readwrite("output_bytes", &StageCost::output_bytes)
      .def_readwrite("stash_bytes", &StageCost::stash_bytes)
      .def_readwrite("weight_bytes", &StageCost::weight_bytes);
  py::class_<Schedule>(module, "Schedule")
      .def(py::init<>())
      .def_static("named", &Schedule::named)
      .def_readwrite("name", &Schedule::name)
      .def_property("ranks", &ops_of, &set_ops)
      .def_readwrite("stages", &Schedule::stages)
      .def_readwrite("link_bandwidth_bytes_per_s", &Schedule::link_bandwidth_bytes_per_s)
      .def_readwrite("link_latency_s", &Schedule::link_latency_s)
      .def_readwrite("memory_bytes", &Schedule::memory_bytes)
      .def_readwrite("steps", &Schedule::steps)
      .def("text", &Schedule::text)
      .def("scenario", &Schedule::scenario);
}

// --- The module --------------------------------------------------------------------------------

py::list metric_rows() {
  py::list rows;
  for (const Metric& metric : metrics()) {
    const char* better = metric.better == Metric::Better::Less   ? "less"
                         : metric.better == Metric::Better::More ? "more"
                                                                 : "neither";
    rows.append(py::make_tuple(metric.key, metric.unit, better, metric.meaning));
  }
  return rows;
}

void bind_types(py::module_& module) {
  py::class_<Options>(module, "Options")
      .def(py::init(&make_options))
      .def_readwrite("timeline", &Options::timeline)
      .def_readwrite("range_draws", &Options::range_draws)
      .def_readwrite("threads", &Options::threads)
      .def_readwrite("engine", &Options::engine);
  py::class_<Result>(module, "Result")
      .def("name", &Result::name)
      .def("metric", &Result::metric)
      .def("json", &Result::json)
      .def("table", &Result::table)
      .def("timeline", &timeline_of)
      .def("memory", &memory_of)
      .def("svg", [](const Result& result) { return unlocked([&] { return result.svg(); }); });
  py::class_<PlanQuestion>(module, "PlanQuestion")
      .def(py::init<>())
      .def_readwrite("model", &PlanQuestion::model)
      .def_readwrite("machines", &PlanQuestion::machines)
      .def_readwrite("devices", &PlanQuestion::devices)
      .def_readwrite("tokens", &PlanQuestion::tokens)
      .def_readwrite("samples", &PlanQuestion::samples)
      .def_readwrite("batch", &PlanQuestion::batch)
      .def_readwrite("sequence_length", &PlanQuestion::sequence_length)
      .def_readwrite("weak", &PlanQuestion::weak)
      .def_readwrite("days", &PlanQuestion::days)
      .def_readwrite("budget", &PlanQuestion::budget)
      .def_readwrite("prices", &PlanQuestion::prices)
      .def_readwrite("mtbf", &PlanQuestion::mtbf);
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  py::register_exception_translator(&translate);
  bind_types(module);
  bind_schedule(module);
  module.def("version", &version);
  module.def("metrics", &metric_rows);
  module.def("check", [](const std::string& text, const Options& options) {
    return unlocked([&] { return check(text, options); });
  });
  module.def("simulate", [](const std::string& text, const Options& options) {
    return unlocked([&] { return simulate(text, options); });
  });
  module.def("simulate_all", [](const std::string& text, const Options& options) {
    return unlocked([&] { return simulate_all(text, options); });
  });
  module.def("report_html", [](const std::vector<Result>& results) {
    return unlocked([&] { return report_html(results); });
  });
  module.def("sweep", &sweep_table);
  module.def("search", &search_plans);
  module.def("plan", &plan_training);
  module.def("explain", &explain_step);
}

// Claims of related systems about orders of work.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/papers/support/paper.h"

namespace interlock::schedule_claims_test {
namespace {

const JsonValue& published(const std::string& name) {
  static std::map<std::string, JsonValue> files;
  const auto [file, fresh] = files.try_emplace(name);
  if (fresh) file->second = read_json_file(data_folder("validate/published") + "/" + name);
  return file->second;
}

TEST_CASE("interlocking lies between local and global training, by its closed form") {
  const Paper paper("interlocking");
  const double head = 0.5;
  for (const int devices : {4, 8, 16}) {
    // Each device has 16 / K modules of 1 ms an op: global 48 ms; N-wise (2N + 1) f + a, since a
    // gradient comes back from N - 1 stages further; local 3 f + a. Messages: 0.01 ms each.
    const double f = 16.0 / devices;
    const std::string k = std::to_string(devices);
    const double expected[] = {48, 7 * f + head, 5 * f + head, 3 * f + head};
    const char* names[] = {"global", "3-wise", "pairwise", "local"};
    double before = 1e9;
    for (int i = 0; i < 4; ++i) {
      const double found = 1e3 * paper.step({k, names[i]});
      tell(k + " devices, " + names[i] + " (ms)", expected[i], found);
      const double messages = 0.01 * 2 * devices;
      CHECK(found >= expected[i] * (1 - 1e-9));
      CHECK(found <= expected[i] + messages);
      CHECK(found < before);
      before = found;
    }
  }
}

TEST_CASE("a loss for each worker's layers is J / (1 + hJ / 3L) times as fast") {
  const Paper paper("local-updates");
  const double layers = 16, head = 0.75;
  for (const int workers : {2, 4, 8, 16}) {
    const std::string j = std::to_string(workers);
    const double gain = paper.step({j, "backpropagation"}) / paper.step({j, "chunked"});
    const double expected = workers / (1 + head * workers / (3 * layers));
    tell(j + " workers, speed-up of chunked", expected, gain);
    CHECK(gain == doctest::Approx(expected).epsilon(1e-3));
    // Greedy: a head for every layer but the last; the first workers have one for each of theirs.
    const double own = layers / workers;
    CHECK(1e3 * paper.step({j, "greedy"}) == doctest::Approx(own * (3 + head)).epsilon(1e-3));
    // A worker keeps its own layers' activations, also if another trains them, and nothing comes
    // back.
    CHECK(paper.stash({j, "chunked"}) <= paper.stash({j, "backpropagation"}));
    CHECK(paper.traffic({j, "chunked"}) ==
          doctest::Approx(paper.traffic({j, "backpropagation"}) / 2));
    CHECK(paper.step({j, "overlapping"}) > paper.step({j, "chunked"}));
    CHECK(paper.step({j, "overlapping"}) < paper.step({j, "backpropagation"}) * (1 + 1e-9));
  }
}

TEST_CASE("slices of tokens fill a deep pipeline, and too thin ones do not") {
  const Paper paper("terapipe");
  const JsonValue& rows = *published("terapipe.json").find("slice_counts")->find("rows");
  const double whole = paper.step({"1"}), told = rows.items[0].find("step_s")->number;
  double best = 0;
  std::string where;
  for (const JsonValue& row : rows.items) {
    const std::string slices = std::to_string(static_cast<int>(row.find("slices")->number));
    if (slices == "8" || slices == "128") continue;  // simulated by the test of slice times
    const double gain = whole / paper.step({slices});
    const double expected = told / row.find("step_s")->number;
    tell(slices + " slices, times as fast as one", expected, gain);
    CHECK(gain == doctest::Approx(expected).epsilon(0.15));
    if (gain > best) where = slices;
    best = std::max(best, gain);
  }
  INFO("best with " << where << " slices, published: 16");
  CHECK(where == "16");
}

TEST_CASE("slow links hurt wide blocks less: within ten points of the published table") {
  const Paper paper("swarm");
  const JsonValue& table = *published("swarm.json").find("table_1");
  const char* widths[] = {"width 768", "width 4096", "width 12288"};
  const char* halves[] = {"0 ms", "5 ms", "25 ms", "50 ms", "100 ms"};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 5; ++i) {
      const auto& result = paper.at({widths[row], halves[i]});
      double found = 0;  // a micro-batch is with one of forty peers at a time, or on its way
      for (const double peer : result.swarm->statistics.peer_busy) found += 100 * peer;
      const double told =
          table.find("rows")->items[row].find("utilisation_percent")->items[i].number;
      tell(std::string(widths[row]) + ", " + halves[i] + " at each end (%)", told, found);
      CHECK(std::abs(found - told) < 10);
    }
  }
}

TEST_CASE("futures are never slower than phases, and gain as times vary more") {
  const Paper paper("phylanx");
  double before = 0;
  for (const char* spread : {"0.01", "0.05", "0.1", "0.2", "0.3", "0.4"}) {
    const double gain = paper.step({spread, "bulk_synchronous"}) / paper.step({spread, "futures"});
    std::printf("  spread %s: phases take %.3f times as long as futures\n", spread, gain);
    CHECK(gain >= 1);
    CHECK(gain > before);
    before = gain;
  }
}

}  // namespace
}  // namespace interlock::schedule_claims_test

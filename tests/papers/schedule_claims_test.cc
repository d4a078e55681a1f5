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

TEST_CASE("tables rank schedules otherwise than runs do: messages turn Chimera and Hanayo over") {
  // Barley, Leis, Klenk and Fröning (arXiv 2605.24006) claim so in their abstract, which gives no
  // numbers.
  const Paper paper("tabular");
  const std::string free = "1000 PB/s", slow = "5 Gb/s";
  const auto gain = [&](const std::string& costs, const std::string& micro_batches,
                        const std::string& link, const std::string& schedule) {
    const auto step = [&](const std::string& of) {
      return paper.step({costs, micro_batches, link, of});
    };
    return step("1f1b") / step(schedule);
  };
  for (const std::string costs : {"equal costs", "llama-2-7b"}) {
    for (const std::string m : {"8", "32"}) {
      CHECK(gain(costs, m, free, "gpipe") == doctest::Approx(1).epsilon(0.001));
      CHECK(paper.stash({costs, m, free, "1f1b"}) < paper.stash({costs, m, free, "gpipe"}));
      CHECK(gain(costs, m, slow, "chimera") < 1);
      CHECK(gain(costs, m, slow, "gpipe") > 1);
    }
    // Chimera's advantage is that of few micro-batches; Hanayo's of as many as there are devices.
    CHECK(gain(costs, "8", free, "chimera") > 1.2);
    CHECK(gain(costs, "32", free, "chimera") < gain(costs, "8", free, "chimera") - 0.2);
    CHECK(gain(costs, "8", free, "hanayo") > 1.15);
    CHECK(gain(costs, "8", slow, "hanayo") < 1);
  }
  // 8 equal stages of 40 ms an op: 1F1B takes (m + 7) 120 ms; waves leave 2 x 7 x 40 ms idle.
  const std::vector<std::string> eight = {"equal costs", "8", free};
  const auto with = [&](const char* schedule) {
    std::vector<std::string> labels = eight;
    labels.push_back(schedule);
    return paper.step(labels);
  };
  CHECK(with("1f1b") == doctest::Approx(15 * 0.12).epsilon(0.01));
  CHECK(with("hanayo") == doctest::Approx(8 * 0.12 + 14 * 0.04).epsilon(0.01));
}

TEST_CASE("measured passes: published bubbles, and rankings that equal passes have otherwise") {
  // Qi et al. (arXiv 2401.10241), table 6: forward, both halves of a backward, a message, ms; and
  // table 5: bubbles of 1F1B and ZB-H1 that follow from them.
  struct Row {
    const char* size;
    int devices, micro_batches;
    double forward, input, weight, message, one_f_one_b, zb_h1;
  };
  const Paper paper("tabular-measured");
  const std::string free = "1000 PB/s", measured = "50 GB/s", slowest = "1 GB/s";
  for (const Row& r : {Row{"1.5 B", 8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585},
                       Row{"6.2 B", 8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323},
                       Row{"14.6 B", 16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397},
                       Row{"28.3 B", 32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421}}) {
    const std::string size = r.size;
    const auto step = [&](const char* passes, const std::string& link, const char* schedule) {
      return 1e3 * paper.step({size + ", " + passes, link, schedule});
    };
    const double p = r.devices, m = r.micro_batches, all = r.forward + r.input + r.weight;
    for (const auto& [name, published] :
         {std::pair("1f1b", r.one_f_one_b), std::pair("zb-h1", r.zb_h1)}) {
      const double bubble = 1 - m * all / step("measured", measured, name);
      tell(size + ", bubble of " + name, published, bubble);
      CHECK(bubble == doctest::Approx(published).epsilon(0.005));
    }
    // Without messages: F + B + W - 3W of p - 1 passes idle under ZB-H1, half of 1F1B's under two
    // chunks. What is moved into bubbles is W, and W is shorter than a third.
    const double idle = (p - 1) * (r.forward + r.input - r.weight);
    CHECK(step("measured", free, "zb-h1") == doctest::Approx(m * all + idle).epsilon(0.001));
    CHECK(step("equal", free, "zb-h1") == doctest::Approx((m + (p - 1) / 3) * all).epsilon(0.001));
    for (const char* passes : {"equal", "measured"}) {
      const double halved = (m + (p - 1) / 2) * all;
      CHECK(step(passes, free, "interleaved") == doctest::Approx(halved).epsilon(0.001));
      for (const char* other : {"1f1b", "interleaved", "chimera", "hanayo", "zb-h1", "zb-v"}) {
        CHECK(step(passes, slowest, "gpipe") < step(passes, slowest, other));
      }
    }
    const auto flips = [&](const char* first, const char* second) {
      CHECK(step("equal", measured, first) < step("equal", measured, second));
      CHECK(step("measured", measured, first) > step("measured", measured, second));
    };
    if (size != "28.3 B") flips("v-half", "interleaved");  // there it is behind by 0.2 % before
    if (size == "1.5 B") {
      flips("zb-h1", "interleaved");
      flips("v-half", "hanayo");
      flips("1f1b", "chimera");
    }
  }
}

}  // namespace
}  // namespace interlock::schedule_claims_test

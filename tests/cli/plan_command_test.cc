// interlock plan as a user runs it: rows that init and search say, and slips.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::plan_command_test {
namespace {

using Words = std::vector<std::string>;

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonValue* member = value.find(key);
  REQUIRE_MESSAGE(member, key);
  return *member;
}

Words plan_of(Words more) {
  more.insert(more.begin(), {"plan", "--model", "gpt2", "--tokens", "1e9", "--batch", "64k"});
  return more;
}

JsonValue planned(const Words& more, const std::string& folder = ".") {
  Words words = plan_of(more);
  words.insert(words.end(), {"--json", "-"});
  const Outcome run = run_program(words, folder);
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  CHECK(run.err == "");
  return parse_json(run.out, "plan");
}

TEST_CASE("a row of plan is the best plan of search for what init writes") {
  const Folder folder;
  const JsonValue json =
      planned({"--machines", "dgx-a100-40g", "--devices", "4", "--sequence-length", "512"});
  const JsonValue& row = at(json, "rows").items.front();
  REQUIRE(run_program({"init", "--model", "gpt2", "--machine", "dgx-a100-40g", "--devices", "4",
                       "--sequence-length", "512", "--out", "s.json"},
                      folder.path())
              .exit_code == 0);
  const Outcome search =
      run_program({"search", "s.json", "--json", "-", "--set", "training.global_batch_size=128",
                   "--set", "parallel.sequence_parallel=true"},
                  folder.path());
  REQUIRE_MESSAGE(search.exit_code == 0, search.err);
  const JsonValue found = parse_json(search.out, "search");
  const JsonValue& best = at(found, "plans").items.front();
  CHECK(at(row, "global_batch_size").number == 128);
  for (const char* key : {"step_time_s", "memory_bytes", "tokens_per_s_per_device", "mfu"}) {
    CHECK(at(at(row, "plan"), key).number == at(best, key).number);
  }
  CHECK(at(at(row, "plan"), "words").text == at(best, "words").text);
  const double rate = at(best, "tokens_per_s_per_device").number * 4;
  CHECK(at(row, "time_s").number == doctest::Approx(1e9 / rate).epsilon(1e-4));
}

TEST_CASE("plan tells table, recommendation and plans, and writes a page and curves") {
  const Folder folder;
  const Outcome run =
      run_program(plan_of({"--machines", "dgx-a100-40g,dgx-h100", "--devices", "2..4x2", "--price",
                           "2 USD/h", "--price", "dgx-h100=5 USD/h", "--days", "28.8 min", "--html",
                           "p.html", "--figure", "p.svg", "--mtbf", "1000 h"}),
                  folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == "wrote p.html\nwrote p.svg\n");
  for (const char* words : {"gpt2, 1.00 G tokens, 65.5 k tokens (64 sequences of 1024) a step",
                            "Recommended: 2 devices of dgx-h100", "the cheapest within 28.8 min",
                            "Next best: ", "dgx-a100-40g x 2", "Failures", "Cost", "Tokens/s/GPU",
                            "GPU-hours", "GiB"}) {
    CHECK_MESSAGE(run.out.find(words) != std::string::npos, run.out);
  }
  for (std::size_t at = 0; at < run.out.size();) {
    const std::size_t end = run.out.find('\n', at);
    CHECK(end - at <= 100 + 2 * 9);  // bytes: a dash of a cell without a value has three
    at = end + 1;
  }
  const std::string page = read_file(folder.path("p.html"));
  CHECK(page.find("<figure") != std::string::npos);
  CHECK(page.find("dgx-h100 x 4") != std::string::npos);
  CHECK(read_file(folder.path("p.svg")).find("strong scaling") != std::string::npos);
}

TEST_CASE("equal sizes and machines are one row, sizes ascend, and a prefix of JSON ranks them") {
  const JsonValue json =
      planned({"--machines", "dgx-h100,dgx-h100", "--machines", "dgx-h100", "--devices", "4,2,4"});
  const auto& rows = at(json, "rows").items;
  REQUIRE(rows.size() == 2);
  CHECK(at(rows[0], "devices").number == 2);
  CHECK(at(rows[1], "devices").number == 4);
  CHECK(at(rows[0], "rank").number + at(rows[1], "rank").number == 3);
  CHECK(at(json, "compared_by").text == "device_hours");
}

TEST_CASE("plan takes settings for all scenarios, and a model of images by samples") {
  const Words one = {"--machines", "dgx-h100", "--devices", "2"};
  Words set = one;
  set.insert(set.end(), {"--set", "search={\"schedule\": [\"gpipe\"], \"pipeline\": [2]}"});
  const JsonValue json = planned(set);
  CHECK(at(at(at(json, "rows").items[0], "plan"), "schedule").text == "gpipe");
  const Outcome images = run_program({"plan", "--model", "resnet-50", "--machines", "dgx-v100-32g",
                                      "--devices", "2", "--samples", "1e6", "--json", "-"});
  REQUIRE_MESSAGE(images.exit_code == 0, images.err);
  CHECK(at(parse_json(images.out, "plan"), "samples").number == 1e6);
}

TEST_CASE("a batch of samples is a whole number of them, with letters of 1000") {
  const auto run = [](const char* batch) {
    return run_program({"plan", "--model", "resnet-50", "--machines", "dgx-v100-32g", "--devices",
                        "2", "--samples", "1e6", "--batch", batch, "--json", "-"});
  };
  CHECK(run("1.5").err.find("--batch: 1.50 samples; expected a whole number, e.g. 2") !=
        std::string::npos);
  CHECK(run("1e12").err.find("1.00 T samples; expected at most 2147483647") != std::string::npos);
  const Outcome thousand = run("1k");
  REQUIRE_MESSAGE(thousand.exit_code == 0, thousand.err);
  CHECK(at(at(parse_json(thousand.out, "plan"), "rows").items[0], "global_batch_size").number ==
        1000);
}

TEST_CASE("the price of one machine holds wherever it stands beside that of all") {
  const Words usual = {"--machines", "dgx-a100-40g,dgx-h100", "--devices", "2"};
  Words first = usual, last = usual;
  first.insert(first.end(), {"--price", "dgx-h100=5 USD/h", "--price", "2 USD/h"});
  last.insert(last.end(), {"--price", "2 USD/h", "--price", "dgx-h100=5 USD/h"});
  const JsonValue a = planned(first), b = planned(last);
  for (std::size_t i = 0; i < 2; ++i) {
    const JsonValue& row = at(a, "rows").items[i];
    const double cost = at(at(row, "cost"), "amount").number;
    CHECK(cost == at(at(at(b, "rows").items[i], "cost"), "amount").number);
    CHECK(cost == doctest::Approx(at(row, "device_hours").number * (i == 0 ? 2 : 5)));
  }
}

TEST_CASE("a machine of a file is called by the file") {
  const Words words =
      plan_of({"--machines", SOURCE_FOLDER "/hardware/catalogue/dgx-h100.json", "--devices", "2"});
  CHECK(run_program(words).out.find("\ndgx-h100 x 2  ") != std::string::npos);
  Words both = words;
  both[both.size() - 3] += ",dgx-h100";
  CHECK(run_program(both).out.find("catalogue/dgx-h100.json x 2") != std::string::npos);
}

TEST_CASE("a model that fits on no size says how much it lacks") {
  const Outcome run = run_program({"plan", "--model", "gpt3-175b", "--machines", "dgx-v100-32g",
                                   "--devices", "2", "--tokens", "1e9", "--batch", "128k"});
  CHECK(run.exit_code == 2);
  CHECK(run.err == "no size fits\n");
  CHECK(run.out.find("No size has a plan that fits") != std::string::npos);
  CHECK(run.out.find("dgx-v100-32g x 2    does not fit: ") != std::string::npos);
  CHECK(run.out.find("leanest") != std::string::npos);
  CHECK(run.out.find("Front:") == std::string::npos);
  const Folder folder;
  const Outcome figure =
      run_program({"plan", "--model", "gpt3-175b", "--machines", "dgx-v100-32g", "--devices", "1,2",
                   "--tokens", "1e9", "--batch", "128k", "--figure", "p.svg"},
                  folder.path());
  CHECK(figure.exit_code == 2);
  CHECK(figure.err == "--figure: nothing is drawn\nno size fits\n");
  CHECK(folder.files().empty());
}

TEST_CASE("slips in what plan is asked get one sentence and exit code 2") {
  const Words usual = {"--machines", "dgx-h100", "--devices", "8", "--tokens", "1e9"};
  const auto refused = [&](const char* option, const char* value, const std::string& words) {
    Words all = {"plan", "--model", "gpt2"};
    bool there = false;
    for (std::size_t i = 0; i < usual.size(); i += 2) {
      const bool same = usual[i] == option;
      there = there || same;
      all.insert(all.end(), {usual[i], same ? value : usual[i + 1]});
    }
    if (!there) all.insert(all.end(), {option, value});
    const Outcome run = run_program(all);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK_MESSAGE(run.err.find(words) != std::string::npos, run.err);
  };
  refused("--machines", "dgx-h10", "did you mean \"dgx-h100\"?");
  refused("--machines", ",", "--machines names none");
  refused("--devices", "0", "0 is out of range");
  refused("--devices", "eight", "is no number of devices");
  refused("--devices", "8..4", "never gets from");
  refused("--devices", "8..64x1", "never gets from");
  refused("--tokens", "abc", "--tokens \"abc\": expected a number from 1 to 1e18 such as 15e12");
  refused("--tokens", "-1", "--tokens");
  refused("--samples", "1e9", "one of --tokens and --samples");
  refused("--batch", "64x", "--batch \"64x\"");
  refused("--tokens", "1e308T", "expected a number from 1 to 1e18 such as");
  refused("--tokens", "0.5", "expected a number from 1 to 1e18 such as");
  refused("--batch", "1000", "expected a multiple, e.g. 1024");
  refused("--batch", "1e17", "sequences of 1024; expected at most 2199023254528");
  refused("--days", "0",
          "--days \"0\": expected a number of days above 0, or a time with its unit");
  refused("--days", "4 weeks", "e.g. --days 30 or --days '36 h'");
  refused("--days", "30 GB", "e.g. --days 30 or --days '36 h'");
  refused("--reserve", "200 GiB", "leaves nothing of the 79.1 GiB of each device");
  refused("--budget", "1e6 EUR", "the price of dgx-h100 is unknown");
  refused("--budget", "cheap", "--budget \"cheap\"");
  refused("--price", "2.50", "a plain number has no currency");
  refused("--price", "dgx-b200=2.50 USD/h", "\"dgx-b200\" is none of the machines");
  refused("--mtbf", "often", "/run/failures/device_mtbf");
  refused("--set", "cluster.devices=8", "expected --devices in its place");
  refused("--set", "cluster.machines.0=dgx-h100", "expected --machines in its place");
  refused("--set", "goal.tokens=1e9", "expected --tokens or --samples in its place");
  refused("--set", "sweep.x=[1]", "expected --devices in its place");
  refused("--set", "run.tokens=1e9", "--set run.tokens: expected --tokens or --samples");
  refused("--set", "run={\"steps\": 100}", "--set run.steps: expected --tokens or --samples");
  refused("--set", "model.sequence_length=512", "expected --sequence-length in its place");
  refused("--set", "training=null", "interlock plan: missing key \"training\"");
  refused("--set", "search.limits.time=\"1 ms\"", "no plan is within search.limits.time");
  refused("--set", "training.precision=fp3", "unknown name \"fp3\"");
  refused("--figure", "p.svg", "one size makes no curve");
  refused("--figure", "p.jpg", ".svg");
  refused("--html", "nowhere/p.html", "nowhere");
  refused("--html", "/proc/p.html", "--html /proc/p.html: cannot");
}

TEST_CASE("plan, search and explain tell what was assumed of a model that no class knows") {
  const Folder folder;
  folder.file("net.json", R"({"model_type": "my_net", "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 32000,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu"})");
  folder.file("s.json", R"({"model": "./net.json", "cluster": {"machine": "dgx-h100", "devices": 1},
    "training": {"strategy": "global", "global_batch_size": 16, "precision": "bf16"},
    "search": {"pipeline": [1], "tensor": [1], "schedule": ["1f1b"]}})");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"plan", "--model", "./net.json", "--machines", "dgx-h100", "--devices", "1", "--tokens",
            "1e9", "--days", "1e-6"},
           {"search", "s.json"},
           {"explain", "s.json"}}) {
    CAPTURE(words.front());
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 0);
    CHECK(run.err.find("model_type \"my_net\" is unknown and was read by its fields") !=
          std::string::npos);
    if (words.front() == "plan") CHECK(run.out.find("% over the time.") != std::string::npos);
  }
}

TEST_CASE("an interrupt of plan keeps what is done") {
  const Folder folder;
  const Outcome run =
      interrupt_program({"plan", "--model", "gpt3-175b", "--machines", "dgx-a100-80g", "--devices",
                         "64,128", "--tokens", "300e9", "--jobs", "1", "--json", "s.json"},
                        folder.path());
  CHECK(run.exit_code == 130);
  CHECK(run.err.find("interrupted: sizes are missing\n") != std::string::npos);
  CHECK(run.out.find("dgx-a100-80g x 128    not searched: interrupted") != std::string::npos);
  CHECK(at(read_json_file(folder.path("s.json")), "stopped").boolean);
}

}  // namespace
}  // namespace interlock::plan_command_test

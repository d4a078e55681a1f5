// Refusals of a scenario: place, mistake, and what to write instead.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/scenarios/documents.h"

namespace interlock::mistakes_test {
namespace {

TEST_CASE("all mistakes of a file are reported together, each with its line and path") {
  const std::string text = R"({
  "modle": 1,
  "model": {"kind": "profile", "modules": [{"forward": 3}]},
  "cluster": {"kind": "uniform", "devices": 0, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB"}},
  "parallel": {"pipelin": 4},
  "training": {"strategy": "globl", "schedule": {"que": "rendezvous"},
               "steps": 1.5},
  "simulate": {"engine": "fast"}
})";
  CHECK(mistakes_of(parse_json(text, "bad.json")) ==
        "bad.json:6: /parallel/pipelin: unknown key; did you mean \"pipeline\"?\n"
        "bad.json:7: /training/strategy: unknown name \"globl\"; known: global, local, "
        "interlocking, greedy, chunked, overlapping, forward-forward, backlink, tree, independent, "
        "pairwise, inference (did you mean \"global\"?)\n"
        "bad.json:8: /training/steps: expected a whole number from 1 to 1000000, got 1.5\n"
        "bad.json:3: /model/modules/0/forward: a plain number has no unit; expected a time such as "
        "\"3 us\", got 3\n"
        "bad.json:4: /cluster/devices: expected a whole number from 1 to 1000000, got 0\n"
        "bad.json:5: /cluster/link/bandwidth: wrong unit; expected a bandwidth such as \"450 "
        "GB/s\", got \"100 GB\"\n"
        "bad.json:9: /simulate/engine: unknown name \"fast\"; known: auto, simgrid, native\n"
        "bad.json:2: /modle: unknown key; did you mean \"model\"?\n"
        "bad.json:7: /training/schedule/que: unknown key; known: kind, backward, queue, copies, "
        "in_flight, update_every, optimizer_sync, chunks, round, folds, transfer_weights, "
        "...");
}

TEST_CASE("missing sections are named") {
  CHECK(mistakes_of(parse_json("{}", "bad.json")) ==
        "bad.json:1: missing key \"training\"; expected an object with a \"strategy\"\n"
        "bad.json:1: missing key \"model\"; expected a model's name, a path, or an object\n"
        "bad.json:1: missing key \"cluster\"; expected a machine's name, a path, or an object");
  CHECK(mistakes_of(parse_json("[]", "bad.json")) ==
        "bad.json:1: expected an object, got an array");
}

TEST_CASE("a model or a machine in the place of a scenario is told to be one") {
  const auto told = [](const char* text) { return mistakes_of(parse_json(text, "it.json")); };
  const std::string model =
      "it.json is a model; expected a scenario: interlock init --model it.json --machine dgx-h100 "
      "--devices 8 --out scenario.json";
  CHECK(told(R"({"model_type": "llama", "hidden_size": 64})") == model);
  CHECK(told(R"({"kind": "mlp", "input_size": 5})") == model);
  CHECK(told(R"({"device": "h100", "port": {}})") ==
        "it.json is a machine; expected a scenario: interlock init --model gpt2-xl --machine "
        "it.json --devices 8 --out scenario.json");
}

TEST_CASE("names of schedules are those of the strategy's family") {
  const std::string global =
      "naive, naive-split, gpipe, terapipe, 1f1b, dualpipe, dualpipe-v, chimera, bitpipe, hanayo, "
      "eager-1f1b, seq1f1b, slimpipe, interleaved, breadth-first, zb-h1, zb-h2, interleaved-zb, "
      "pipeoffload, zb-v, v-half, v-min, weipipe, helixpipe, pipedream, pipedream-2bw, "
      "pipelined-backprop, ddg, features-replay, petra, auto or file";
  CHECK(mistakes({"training.schedule=1f1b-x"}) ==
        "set: /training/schedule: unknown schedule \"1f1b-x\"; did you mean \"1f1b\"?");
  CHECK(mistakes({"training.schedule=sideways"}) ==
        "set: /training/schedule: unknown schedule \"sideways\"; known for global training: " +
            global);
  CHECK(mistakes({"training.strategy=local", "training.schedule=sideways"}) ==
        "set: /training/schedule: unknown schedule \"sideways\"; known for local training: auto, "
        "eager, dgl, ppll or list");
  CHECK(mistakes({"training.schedule=eager"}) ==
        "set: /training/schedule: \"eager\" is no schedule for global training; expected " +
            global);
  CHECK(mistakes({"training.strategy=pairwise", "training.schedule.kind=gpipe"}) ==
        "set: /training/schedule/kind: \"gpipe\" is no schedule for pairwise training; expected "
        "auto, eager or list");
  CHECK(mistakes({"training.strategy=greedy", "training.schedule=list"}) ==
        "set: /training/schedule: \"list\" is no schedule for greedy training; expected auto, "
        "eager, dgl or ppll");
  CHECK(mistakes({"training.schedule=4"}) == "set: /training/schedule: expected an object, got 4");
}

TEST_CASE("a strategy with its N in the name is told as an object") {
  CHECK(mistakes({"training.strategy=3-wise"}) ==
        "set: /training/strategy: unknown name \"3-wise\"; expected {\"kind\": \"interlocking\", "
        "\"n_wise\": 3}");
  CHECK(mistakes({R"(training.strategy={"kind": "3-wise"})"})
            .starts_with("set: /training/strategy/kind: unknown name \"3-wise\"; expected {"));
  CHECK(mistakes({"training.strategy=12wise"}).find("\"n_wise\": 12}") != std::string::npos);
  CHECK(mistakes({"training.strategy=wise"}).find("known: global, local") != std::string::npos);
}

TEST_CASE("a key of another object is told with the place that is nearest") {
  CHECK(mistakes({R"(training.strategy={"kind": "pairwise", "in_flight": 3})"}) ==
        "set: /training/strategy/in_flight: unknown key; did you mean "
        "\"training.schedule.in_flight\"?");
  CHECK(mistakes({"training.module_stages=3"}) ==
        "set: /training/module_stages: unknown key; did you mean "
        "\"training.strategy.module_stages\"?");
  CHECK(mistakes({"strategy=local"}) ==
        "set: /strategy: unknown key; did you mean \"training.strategy\"?");
  CHECK(mistakes({"parallel.recompute=full"}) ==
        "set: /parallel/recompute: unknown key; did you mean \"training.recompute\"?");
  INFO("a key that is in many places, or in none, is told with those of its object");
  for (const std::string key : {"layers", "sparkle"}) {
    CHECK(mistakes({"training." + key + "=3"}).find("unknown key; known: strategy, ") !=
          std::string::npos);
  }
}

TEST_CASE("schedules whose weight gradients wait refuse a fused backward") {
  for (const std::string name :
       {"zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "interleaved-zb", "pipeoffload"}) {
    CHECK(mistakes({"parallel.pipeline=2", "training.micro_batches=2",
                    "training.schedule={\"kind\": \"" + name + "\", \"backward\": \"fused\"}"}) ==
          "set: /training/schedule/backward: \"" + name +
              "\" makes weight gradients apart from input gradients; expected split");
  }
}

TEST_CASE("PPLL's queues carry activations only, and forward-forward has no heads") {
  CHECK(mistakes({"training.strategy=local", "training.schedule=dgl"}) == "");
  CHECK(mistakes({R"(training.strategy={"kind": "tree"})", "training.schedule=dgl"}) == "");
  CHECK(
      mistakes({R"(training.strategy={"kind": "tree"})", "training.schedule=auto"}) ==
      "set: /training/schedule: \"auto\" is no schedule for tree training; expected eager, dgl or "
      "ppll");
  CHECK(mistakes({"training.strategy=independent"}) == "");
  CHECK(
      mistakes({"training.strategy=independent", "training.schedule=ppll"}) ==
      "set: /training/schedule: \"ppll\" is no schedule for independent training; expected eager");
  CHECK(mistakes({"training.strategy=local", "parallel.pipeline=2", "parallel.stages=4",
                  "training.schedule=dgl"}) ==
        "set: /parallel/stages: \"dgl\" gives each of the 2 ranks one stage; expected 2, got 4");
  CHECK(mistakes({"training.strategy=local", "parallel.pipeline=2",
                  R"(training.schedule={"kind": "dgl", "chunks": 2})"}) ==
        "set: /training/schedule/chunks: \"dgl\" gives each rank one stage; expected no "
        "\"chunks\"");
  CHECK(
      mistakes({"training.strategy=local",
                R"(training.schedule={"kind": "dgl", "queue": "unlimited",
                     "copies": "compute_stream", "optimizer_sync": "barrier"})"}) ==
      "set: /training/schedule/queue: \"dgl\" learns from a buffer of inputs; expected its length, "
      "{\"buffered\": 4}\n"
      "set: /training/schedule/copies: \"dgl\" computes while messages travel; expected "
      "\"overlapped\"\n"
      "set: /training/schedule/optimizer_sync: \"dgl\" lets no stage wait for another; expected "
      "\"per_stage\"");
  CHECK(mistakes({"training.strategy=local", "training.schedule=ppll"}) == "");
  CHECK(mistakes({"training.strategy=forward-forward", "training.schedule=ppll"}) == "");
  CHECK(mistakes({"training.strategy=pairwise", "training.schedule=ppll"}) ==
        "set: /training/schedule: \"ppll\" is no schedule for pairwise training; expected auto, "
        "eager or list");
  CHECK(
      mistakes({R"(training.strategy={"kind": "forward-forward", "heads": "all"})"}) ==
      "set: /training/strategy/heads: means nothing for a forward-forward strategy; expected only "
      "with local, interlocking, pairwise or greedy");
}

TEST_CASE("one V has two stages a rank") {
  for (const std::string chunks : {"1", "4"}) {
    CHECK(mistakes({"model.modules.0.repeat=16", "training.micro_batches=8",
                    R"(training.schedule={"kind": "zb-v", "chunks": )" + chunks + "}"}) ==
          "set: /training/schedule: zb-v goes down and up again once; expected 2 chunks, got " +
              chunks);
  }
}

TEST_CASE("overlapping blocks that both run their shared part need a part more than stages") {
  const Overrides recomputed = {
      R"(training.strategy={"kind": "overlapping", "forward": "recomputed"})"};
  CHECK(mistakes(recomputed) ==
        "test.json:1: blocks that both run the part they share cut a model into one part more than "
        "there are stages; expected fewer stages than its 4 modules, got 4");
}

TEST_CASE("BackLink is told how far the error of the next stage goes down") {
  CHECK(mistakes({R"(training.strategy={"kind": "backlink", "modules": 2})"}) == "");
  CHECK(mistakes({"training.strategy=backlink"}) ==
        "set: /training/strategy: how many modules? expected {\"kind\": \"backlink\", \"modules\": "
        "2}");
  CHECK(mistakes({R"(training.strategy={"kind": "backlink"})"}) ==
        "set: /training/strategy: missing key \"modules\"; expected the number of modules that the "
        "next stage's error goes down");
  CHECK(mistakes({R"(training.strategy={"kind": "backlink", "modules": 0})"}) ==
        "set: /training/strategy/modules: expected a whole number from 1 to 1000000000, got 0");
  CHECK(mistakes({R"(training.strategy={"kind": "local", "modules": 2})"}) ==
        "set: /training/strategy/modules: means nothing for a local strategy; expected only with "
        "backlink");
}

TEST_CASE("two versions of the weights need a window that all under way fits into") {
  const Overrides four = {"training.micro_batches=4", "training.schedule=pipedream-2bw"};
  CHECK(mistakes(four) == "");
  CHECK(mistakes({"training.schedule=pipedream-2bw", "training.micro_batches=3"}) ==
        "set: /training/schedule: pipedream-2bw has two versions of the weights, so what is under "
        "way must fit between two updates; expected at least 4 micro-batches between updates, one "
        "for each stage, got 3");
  CHECK(mistakes({"training.micro_batches=8",
                  "training.schedule={\"kind\": \"pipedream-2bw\", \"update_every\": 2}"}) ==
        "set: /training/schedule: pipedream-2bw has two versions of the weights, so what is under "
        "way must fit between two updates; expected at least 4 micro-batches between updates, one "
        "for each stage, got 2");
}

TEST_CASE("schedules that run forwards again decide themselves what a forward keeps") {
  for (const std::string name : {"features-replay", "petra"}) {
    CHECK(mistakes({"training.schedule=" + name, "training.recompute=none"}) == "");
    CHECK(mistakes({"training.schedule=" + name, "training.recompute=full"}) ==
          "set: /training/recompute: \"" + name +
              "\" says itself what a forward keeps; expected \"none\"");
  }
}

TEST_CASE("copies on the compute stream leave a device one thing to do at a time") {
  CHECK(mistakes({"training.strategy=local",
                  R"(training.schedule={"copies": "compute_stream", "in_flight": 2})"}) ==
        "set: /training/schedule/copies: copies on the compute stream leave one thing to do at a "
        "time; expected \"in_flight\" 1, got 2");
  CHECK(mistakes({"parallel.pipeline=2", "parallel.stages=4",
                  R"(training.schedule={"copies": "compute_stream"})"}) ==
        "test.json:1: copies on the compute stream leave a device one stage; expected 2 stages, "
        "got 4");
}

TEST_CASE("keys of other strategies are refused with the strategies that have them") {
  CHECK(mistakes({"training.strategy={\"kind\": \"global\", \"n_wise\": 2, \"heads\": \"all\"}"}) ==
        "set: /training/strategy/n_wise: means nothing for a global strategy; expected only with "
        "interlocking\n"
        "set: /training/strategy/heads: means nothing for a global strategy; expected only with "
        "local, interlocking, pairwise or greedy");
  CHECK(mistakes({"training.strategy={\"kind\": \"overlapping\", \"gradient\": \"mean\"}"}) ==
        "set: /training/strategy/gradient: an overlapping strategy has no \"mean\"; expected "
        "furthest or sum");
  CHECK(mistakes({"training.strategy=chunked"}) ==
        "set: /training/strategy: how many chunks? expected {\"kind\": \"chunked\", \"chunks\": "
        "2}");
  CHECK(mistakes({"training.strategy={\"kind\": \"chunked\"}"}) ==
        "set: /training/strategy: missing key \"chunks\"; expected the number of blocks of stages");
}

TEST_CASE("policies that contradict the schedule are refused") {
  CHECK(mistakes({"training.schedule={\"kind\": \"naive\", \"backward\": \"split\"}"}) ==
        "set: /training/schedule/backward: naive with a split backward is \"naive-split\"; "
        "expected fused");
  CHECK(mistakes({"training.schedule={\"kind\": \"1f1b\", \"in_flight\": 2}"}) ==
        "set: /training/schedule/in_flight: only \"eager\" and \"auto\" have a limit to set; "
        "expected 1 "
        "with \"1f1b\", got 2");
  CHECK(mistakes({"training.strategy=local", "training.micro_batches=8",
                  "training.schedule.update_every=3"}) ==
        "set: /training/schedule/update_every: a step is no whole number of updates; expected a "
        "divisor of its 8 micro-batches, got 3");
  CHECK(mistakes({"training.micro_batches=8",
                  "training.schedule={\"kind\": \"gpipe\", \"update_every\": 4}"}) ==
        "set: /training/schedule/update_every: \"gpipe\" updates once for each step; expected its "
        "8 micro-batches, got 4");
  CHECK(mistakes({"training.schedule.queue=5"}) ==
        "set: /training/schedule/queue: expected \"rendezvous\", \"unlimited\" or {\"buffered\": "
        "1}");
  CHECK(mistakes({"training.schedule.queue={\"bufered\": 1}"}) ==
        "set: /training/schedule/queue: missing key \"buffered\"; expected how many messages may "
        "wait, {\"buffered\": 1}\n"
        "set: /training/schedule/queue/bufered: unknown key; did you mean \"buffered\"?");
}

TEST_CASE(
    "an N for each loss needs as many as there are stages, and a search for them its bounds") {
  const auto reach = [](const std::string& rest) {
    return mistakes({"training.strategy={\"kind\": \"interlocking\", " + rest + "}"});
  };
  const std::string place = "set: /training/strategy/";
  CHECK(reach("\"n_wise\": [1, 2, 1, 9]") == "");
  CHECK(reach("\"n_wise\": \"auto\", \"least_n\": 2, \"slowdown\": 0.5") == "");
  CHECK(reach("\"n_wise\": [1, 2, 1]") ==
        place + "n_wise: has 3 numbers; expected one for the loss of each of the 4 stages");
  CHECK(reach("\"n_wise\": []") ==
        place +
            "n_wise: wrong list of N; expected at least 1 number: one for the loss of each "
            "stage");
  CHECK(reach("\"n_wise\": [1, 0, 2, 2]") ==
        place + "n_wise/1: expected a whole number from 1 to 1000000000, got 0");
  CHECK(reach("\"n_wise\": \"all\"") ==
        place +
            "n_wise: wrong type; expected a number of stages, a list with one for the loss of "
            "each stage, or \"auto\", got \"all\"");
  CHECK(reach("\"n_wise\": 2, \"least_n\": 2") ==
        place + "least_n: bounds a search for N; expected it beside \"n_wise\": \"auto\"");
  CHECK(reach("\"slowdown\": 0.5") ==
        place + "slowdown: bounds a search for N; expected it beside \"n_wise\": \"auto\"");
  CHECK(reach("\"n_wise\": \"auto\", \"gradient\": \"sum\"") ==
        place +
            "n_wise: \"auto\" chooses the furthest loss of each stage; expected "
            "\"gradient\": \"furthest\", or a number for the loss of each stage");
  CHECK(reach("\"n_wise\": \"auto\", \"heads\": \"all\"") ==
        place +
            "n_wise: \"auto\" chooses which stages have heads; expected \"heads\": "
            "\"minimal\", or a number for the loss of each stage");
  CHECK(mistakes({R"(training.strategy={"kind": "local", "least_n": 2})"})
            .starts_with(place + "least_n: "));
}

TEST_CASE("batch sizes must divide and must not be given twice") {
  CHECK(mistakes({"training.global_batch_size=100", "training.micro_batch_size=48"}) ==
        "set: /training/micro_batch_size: the global batch is no whole multiple of it; expected a "
        "divisor of 100, got 48");
  CHECK(mistakes({"training.global_batch_size=100", "training.micro_batches=3"}) ==
        "set: /training/micro_batches: the global batch is no whole multiple of it; expected a "
        "divisor of 100, got 3");
  CHECK(mistakes({"training.global_batch_size=100", "training.micro_batch_size=50",
                  "training.micro_batches=2"}) ==
        "set: /training/micro_batches: given beside \"micro_batch_size\"; expected one of the two, "
        "the other follows");
  CHECK(mistakes({"model=resnet-50", "cluster=dgx-a100-80g", "parallel.pipeline=2"}) ==
        "test.json:6: /training: missing key \"global_batch_size\"; expected a number of samples");
}

TEST_CASE("devices must be able to do what the model asks") {
  CHECK(mistakes({"model=resnet-50", "training.global_batch_size=8"}) ==
        "test.json:4: /cluster: its devices have no speed, so only measured profiles can run on "
        "them; expected a \"device\" or a machine such as \"dgx-a100-80g\"");
  const Overrides old = {"model=resnet-50", "training.global_batch_size=8", "cluster=dgx-v100-32g"};
  CHECK(mistakes(old).ends_with(" does not compute in bf16; expected fp32 or fp16"));
  CHECK(mistakes(old).starts_with("test.json:6: /training: V100"));
  Overrides eight = old;
  eight.push_back("training.precision=fp8");
  CHECK(mistakes(eight).ends_with(" does not compute in fp8; expected fp32 or fp16"));
  CHECK(mistakes(eight).starts_with("set: /training/precision: V100"));
}

TEST_CASE("absurd sizes are refused in one sentence") {
  CHECK(mistakes({"training.micro_batches=1000000000"}) ==
        "test.json:1: the run has about 96.0 G ops (stages x micro-batches x steps); expected at "
        "most 2.00 G");
  CHECK(
      mistakes(
          {"training.strategy=local", "training.micro_batches=10000000", "training.steps=2"}) ==
      "test.json:1: the order of work repeats only after 120 M ops; expected at most 20.0 M, by a "
      "smaller \"update_every\", \"in_flight\" or \"stale_every\"");
  CHECK(mistakes({"training.strategy=local", "training.micro_batches=10000000", "training.steps=2",
                  "training.schedule.update_every=1"}) == "");
  CHECK(mistakes({"model.modules.0.repeat=20000", "cluster.devices=20000",
                  "training.strategy={\"kind\": \"interlocking\", \"n_wise\": 20000}",
                  "training.steps=1"}) ==
        "test.json:1: the micro-batches in flight take 400 M ops; expected at most 4.00 M");
  CHECK(mistakes({"model.modules.0.repeat=100000"}) ==
        "test.json:1: balancing 100000 modules over 4 stages is too large a search; expected "
        "\"uniform\" or a list with the modules of each stage");
}

TEST_CASE("a stale head that would be renewed at every micro-batch is refused") {
  CHECK(mistakes(
            {R"(training.strategy={"kind": "local", "head": {"weights": {"stale_every": 1}}})"}) ==
        "set: /training/strategy/head: a head that is renewed at every micro-batch is not stale; "
        "expected \"stale_every\" of at least 2 steps where a step is one micro-batch");
}

TEST_CASE("a hundred mistakes and more do no harm") {
  std::string text = "{";
  for (int i = 0; i < 150; ++i) text += "\"key" + std::to_string(i) + "\": 0, ";
  text += kFourModules.substr(1);
  const std::string message = mistakes_of(parse_json(text, "bad.json"));
  CHECK(message.starts_with("bad.json:1: /key0: unknown key; "));
  CHECK(std::count(message.begin(), message.end(), '\n') >= 99);
}

TEST_CASE("overrides must be a path and a value") {
  CHECK_THROWS_WITH(read_scenario_document("/nowhere/at/all.json", {}),
                    "/nowhere/at/all.json: cannot be read: no such file or directory");
}

}  // namespace
}  // namespace interlock::mistakes_test

// block_bench: forward and backward of a transformer block on a GPU, beside its products alone.
// SPDX-License-Identifier: Apache-2.0
//
// Both are graphs, so that no launch counts; products alone have no bias in them. Usage:
// cuda_block_bench [HIDDEN TOKENS], 4096 each if not said; sequences of 512 tokens and of 2048.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/error_summary.h"
#include "base/json/json.h"
#include "validate/cuda/bench/gpu_probe.h"
#include "validate/cuda/device/captured_graph.h"
#include "validate/cuda/device/device_group.h"
#include "validate/cuda/device/look.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/run_times.h"

namespace interlock::cuda {

namespace {

constexpr int kRuns = 31;
constexpr int kHead = 128;  // columns of an attention head, as large models have them

struct BlockSize {
  int hidden = 4096, tokens = 4096, sequence = 512;
};

/// The layers of one block.
std::vector<Layer> block_of(const BlockSize& size) {
  const std::string text = R"({"kind": "transformer", "layers": 1, "hidden_size": )" +
                           std::to_string(size.hidden) +
                           R"(, "attention": "materialised", "attention_heads": )" +
                           std::to_string(std::max(1, size.hidden / kHead)) +
                           R"(, "vocab_size": 256, "tied_embeddings": false, "sequence_length": )" +
                           std::to_string(size.sequence) + "}";
  const JsonValue document = parse_json(text, "block");
  Diagnostics diagnostics;
  const NeuralNetwork network = build_network(
      {&document, ""}, {.micro_batch_size = size.tokens / size.sequence}, diagnostics);
  diagnostics.throw_if_any();
  return network.modules.at(1).layers;
}

/// A block with its tensors on the device.
class Block {
 public:
  Block(const BlockSize& size, const KernelContext& context)
      : layers_(block_of(size)), context_(context) {
    const Element element = context.stream.element;
    plan_ = plan_stage({.layers = layers_,
                        .samples = size.tokens / size.sequence,
                        .rows = size.tokens,
                        .columns = size.hidden,
                        .element = static_cast<int>(bytes_of(element))});
    const std::int64_t activation = std::int64_t{size.tokens} * size.hidden * bytes_of(element);
    tensors_.samples = size.tokens / size.sequence;
    tensors_.rows_per_sample = size.sequence;
    for (const Place place :
         {Place::Input, Place::Output, Place::OutputGradient, Place::InputGradient}) {
      tensors_.places[static_cast<std::size_t>(place)] = take(activation, 1);
    }
    tensors_.places[static_cast<std::size_t>(Place::Stash)] = take(plan_.stash, 1);
    tensors_.places[static_cast<std::size_t>(Place::Workspace)] = take(plan_.workspace, 1);
    for (const Parameter& parameter : parameters_of("block", layers_)) {
      const std::int64_t bytes = parameter.size() * bytes_of(element);
      weights_.push_back(take(bytes, 1 / std::sqrt(static_cast<float>(size.hidden))));
      gradients_.push_back(take(bytes, 0));
    }
    tensors_.weights = &weights_;
    tensors_.gradients = &gradients_;
  }

  void run() const {
    run_steps(context_, plan_.forward, tensors_, {});
    run_steps(context_, plan_.backward, tensors_, {});
  }

 private:
  /// Room full of normal numbers times `factor`.
  char* take(std::int64_t bytes, float factor) {
    rooms_.push_back(std::make_unique<Scratch>());
    char* begin = rooms_.back()->take(bytes, context_.stream.handle);
    fill_with_noise(context_.stream, begin, bytes);
    scale(context_.stream, begin, begin, factor, bytes / bytes_of(context_.stream.element));
    return begin;
  }

  std::vector<Layer> layers_;
  const KernelContext& context_;
  StagePlan plan_;
  std::vector<std::unique_ptr<Scratch>> rooms_;
  std::vector<char*> weights_, gradients_;
  StageTensors tensors_;
};

/// The median of the runs of `work` as a graph, in seconds, by marks inside it.
double time_of(cudaStream_t stream, const std::function<void()>& work) {
  Events events;
  cudaEvent_t begin = nullptr, end = nullptr;
  const CapturedGraph graph(stream, [&] {
    begin = events.mark(stream, true);
    work();
    end = events.mark(stream, true);
  });
  std::vector<double> times;
  for (int run = -2; run < kRuns; ++run) {  // two to warm up
    graph.launch();
    require(cudaStreamSynchronize(stream), "run a block");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "read a time");
    if (run >= 0) times.push_back(milliseconds / 1e3);
  }
  return median_of(times);
}

void compare(const BlockSize& size, Element element) {
  DeviceGroup group(1, {});
  const Member& member = group.members().front();
  Products products(member.gpu);
  Scratch scratch;
  const KernelContext context = {
      {member.compute, member.sms, element}, &products, &scratch, member.sms};
  const Block block(size, context);
  std::vector<std::pair<ProductShape, ProductOperands>> heard;
  products.listener = [&](const ProductShape& shape, const ProductOperands& operands) {
    heard.emplace_back(shape, operands);
    heard.back().first.bias = false;
  };
  block.run();
  products.listener = nullptr;
  const auto alone = [&] {
    for (const auto& [shape, operands] : heard) products.run(context.stream, shape, operands);
  };
  alone();
  require(cudaStreamSynchronize(context.stream.handle), "run a block");
  const double whole = time_of(member.compute, [&] { block.run(); });
  const double parts = time_of(member.compute, alone);
  std::printf(
      "hidden %d, %d tokens in sequences of %d, %s: block %.3f ms, its %zu products alone %.3f ms, "
      "%.1f %% of it\n",
      size.hidden, size.tokens, size.sequence, element == Element::Fp32 ? "fp32" : "bf16",
      whole * 1e3, heard.size(), parts * 1e3, 100 * parts / whole);
}

}  // namespace

}  // namespace interlock::cuda

int main(int argc, char** argv) {
  using namespace interlock;
  cuda::BlockSize size;
  if (argc == 3) {
    size.hidden = std::atoi(argv[1]);
    size.tokens = std::atoi(argv[2]);
  }
  const bool whole = size.tokens < 512 || size.tokens % 512 == 0;
  if ((argc != 1 && argc != 3) || size.hidden < 1 || size.tokens < 1 || !whole) {
    std::fprintf(stderr,
                 "usage: cuda_block_bench [HIDDEN TOKENS], whole sequences of 512 tokens\n");
    return 2;
  }
  try {
    CudaReport report;
    cuda::look(report);
    if (report.state != CudaState::Ready) throw Error(report.sentence);
    for (const int sequence : {512, 2048}) {
      if (sequence > 512 && size.tokens % sequence != 0) continue;
      size.sequence = std::min(sequence, size.tokens);
      for (const auto element : {cuda::Element::Bf16, cuda::Element::Fp32}) {
        cuda::compare(size, element);
      }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

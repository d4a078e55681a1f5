// Plain loops over complex numbers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/written_network.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace interlock::written {
namespace {

constexpr double kStep = 1e-40;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Vector product(const Vector& x, const Vector& weight, const Vector& bias, std::int64_t rows) {
  const std::int64_t outputs = static_cast<std::int64_t>(bias.size());
  const std::int64_t inputs = static_cast<std::int64_t>(x.size()) / rows;
  Vector y(at(rows * outputs));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      Number sum = bias[at(o)];
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += x[at(r * inputs + i)] * weight[at(i * outputs + o)];
      }
      y[at(r * outputs + o)] = sum;
    }
  }
  return y;
}

Vector norm(const Vector& x, const Vector& gain, const Vector& shift, std::int64_t rows) {
  const std::int64_t width = static_cast<std::int64_t>(gain.size());
  Vector y(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    Number mean = 0, variance = 0;
    for (std::int64_t i = 0; i < width; ++i) mean += x[at(r * width + i)];
    mean /= static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const Number off = x[at(r * width + i)] - mean;
      variance += off * off;
    }
    const Number deviation = std::sqrt(variance / static_cast<double>(width) + 1e-5);
    for (std::int64_t i = 0; i < width; ++i) {
      y[at(r * width + i)] = gain[at(i)] * (x[at(r * width + i)] - mean) / deviation + shift[at(i)];
    }
  }
  return y;
}

Vector gelu(Vector x) {
  for (Number& v : x) {
    const Number inner = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
    v = 0.5 * v * (1.0 + std::tanh(inner));
  }
  return x;
}

Number cross_entropy(const Vector& logits, const std::vector<std::int32_t>& targets,
                     std::int64_t rows) {
  const std::int64_t classes = static_cast<std::int64_t>(logits.size()) / rows;
  Number sum = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    Number total = 0;
    for (std::int64_t c = 0; c < classes; ++c) total += std::exp(logits[at(r * classes + c)]);
    sum += std::log(total) - logits[at(r * classes + targets[at(r)])];
  }
  return sum / static_cast<double>(rows);
}

/// The projection of a readout or a head, whatever its name.
Vector projected(const Stage& stage, const std::string& module, const Vector& x) {
  const Vector *weight = nullptr, *bias = nullptr;
  for (const auto& [name, values] : stage.weights) {
    const bool of_norm = name.find(".norm.") != std::string::npos;
    if (name.rfind(module + ".", 0) != 0 || of_norm) continue;
    if (name.find(".head.") != std::string::npos && module.find(".head") == std::string::npos) {
      continue;
    }
    (name.ends_with(".weight") ? weight : bias) = &values;
  }
  return product(x, *weight, *bias, stage.rows);
}

/// Norm, product, GELU, product.
Vector of_branch(const Stage& stage, const std::string& name, const Vector& x) {
  const auto weight = [&](const char* of) { return stage.weights.at(name + "." + of); };
  const Vector normed = norm(x, weight("norm.gain"), weight("norm.shift"), stage.rows);
  const Vector inner =
      gelu(product(normed, weight("first.weight"), weight("first.bias"), stage.rows));
  return product(inner, weight("second.weight"), weight("second.bias"), stage.rows);
}

/// Column c of half h of each row is column c + h * width / 2.
Vector half(const Vector& x, std::int64_t rows, std::int64_t second) {
  const std::int64_t width = static_cast<std::int64_t>(x.size()) / rows / 2;
  Vector part;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) part.push_back(x[at((2 * r + second) * width + c)]);
  }
  return part;
}

Vector joined(const Vector& a, const Vector& b, std::int64_t rows) {
  const std::int64_t width = static_cast<std::int64_t>(a.size()) / rows;
  Vector whole;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (const Vector* part : {&a, &b}) {
      for (std::int64_t c = 0; c < width; ++c) whole.push_back((*part)[at(r * width + c)]);
    }
  }
  return whole;
}

/// x + factor * y.
Vector plus(Vector x, const Vector& y, double factor) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
  return x;
}

Vector of_module(const Stage& stage, const std::string& module, const Vector& x) {
  const auto weight = [&](const char* name) { return stage.weights.at(module + "." + name); };
  if (module == "input") {
    return product(x, weight("linear.weight"), weight("linear.bias"), stage.rows);
  }
  if (stage.weights.count(module + ".f.first.weight") > 0) {
    const Vector x1 = half(x, stage.rows, 0), x2 = half(x, stage.rows, 1);
    const Vector y1 = plus(x1, of_branch(stage, module + ".f", x2), 1);
    return joined(y1, plus(x2, of_branch(stage, module + ".g", y1), 1), stage.rows);
  }
  const bool block = module.rfind("block", 0) == 0;
  if (block) return plus(of_branch(stage, module + ".mlp", x), x, 1);
  const Vector normed = norm(x, weight("norm.gain"), weight("norm.shift"), stage.rows);
  return projected(stage, module, normed);
}

/// The slope of what `stage` makes in a number that is a part of `stage` or of `x`.
double slope(const Stage& stage, const Vector& x, const Vector& dy,
             const std::vector<std::int32_t>& targets, Number& number) {
  number += Number(0, kStep);
  const Vector y = forward(stage, x, targets);
  number = number.real();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i].real() * y[i].imag() / kStep;
  return sum;
}

}  // namespace

Vector forward(const Stage& stage, const Vector& x, const std::vector<std::int32_t>& targets) {
  Vector y = x;
  for (const std::string& module : stage.modules) y = of_module(stage, module, y);
  return stage.has_loss() ? Vector{cross_entropy(y, targets, stage.rows)} : y;
}

Vector rebuilt(const Stage& stage, const Vector& y) {
  const std::string& module = stage.modules.front();
  const Vector y1 = half(y, stage.rows, 0), y2 = half(y, stage.rows, 1);
  const Vector x2 = plus(y2, of_branch(stage, module + ".g", y1), -1);
  return joined(plus(y1, of_branch(stage, module + ".f", x2), -1), x2, stage.rows);
}

Slopes backward(const Stage& stage, const Vector& x, const Vector& dy,
                const std::vector<std::int32_t>& targets) {
  Stage moved = stage;
  Vector input = x;
  Slopes slopes;
  for (auto& [name, values] : moved.weights) {
    for (Number& value : values) {
      slopes.weights[name].emplace_back(slope(moved, input, dy, targets, value));
    }
  }
  for (Number& value : input) {
    slopes.input.emplace_back(slope(moved, input, dy, targets, value));
  }
  return slopes;
}

Number loss_of(const Stage& stage, const Vector& x, const std::vector<std::int32_t>& targets) {
  const Vector y = forward(stage, x, targets);
  if (stage.has_loss()) return y[0];
  return cross_entropy(projected(stage, stage.head, y), targets, stage.rows);
}

Weights slopes_of_loss(const Stage& stage, const Vector& x,
                       const std::vector<std::int32_t>& targets) {
  Stage moved = stage;
  Weights slopes;
  for (auto& [name, values] : moved.weights) {
    for (Number& value : values) {
      value += Number(0, kStep);
      slopes[name].emplace_back(loss_of(moved, x, targets).imag() / kStep);
      value = value.real();
    }
  }
  return slopes;
}

void descend(Weights& weights, const Weights& slopes, double rate) {
  for (auto& [name, values] : weights) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= rate * slopes.at(name)[i];
  }
}

std::vector<Stage> stages_of(const Job& job,
                             const std::map<std::string, std::vector<double>>& first) {
  std::vector<Stage> stages;
  for (std::size_t s = 0; s + 1 < job.first_module.size(); ++s) {
    Stage stage = {.rows = job.network.samples_per_micro_batch};
    for (int m = job.first_module[s]; m < job.first_module[s + 1]; ++m) {
      const std::string& module = job.network.modules[static_cast<std::size_t>(m)].name;
      stage.modules.push_back(module);
      for (const auto& [name, values] : first) {
        const bool own = name.rfind(module + ".", 0) == 0;
        if (own) stage.weights[name] = Vector(values.begin(), values.end());
      }
    }
    if (job.roles[s].head) stage.head = stage.modules.back() + ".head";
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace interlock::written

// References of the kernels, in double precision and as plain as can be.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace interlock::cuda::reference {

namespace {

// sqrt(2 / pi) and 0.044715 of the tanh form: Hendrycks and Gimpel, arXiv 1606.08415.
constexpr double kGeluRoot = 0.79788456080286535588, kGeluCube = 0.044715;

}  // namespace

double gelu(double x) { return 0.5 * x * (1 + std::tanh(kGeluRoot * (x + kGeluCube * x * x * x))); }

double gelu_slope(double x) {
  const double t = std::tanh(kGeluRoot * (x + kGeluCube * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluRoot * (1 + 3 * kGeluCube * x * x);
}

Numbers embed(const Numbers& table, const Numbers& places, const Tokens& tokens, int positions,
              int columns) {
  Numbers y;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (int c = 0; c < columns; ++c) {
      const std::size_t place = positions > 0 ? row % positions * columns + c : 0;
      y.push_back(table[static_cast<std::size_t>(tokens[row]) * columns + c] +
                  (positions > 0 ? places[place] : 0));
    }
  }
  return y;
}

void embed_gradient(Numbers& dtable, Numbers& dplaces, const Numbers& dy, const Tokens& tokens,
                    int positions) {
  const std::size_t columns = dy.size() / tokens.size();
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t row = i / columns, c = i % columns;
    dtable[static_cast<std::size_t>(tokens[row]) * columns + c] += dy[i];
    if (positions > 0) dplaces[row % positions * columns + c] += dy[i];
  }
}

namespace {

/// Mean and 1 / deviation of `count` numbers from x[first] on, `step` apart.
std::pair<double, double> statistics(const Numbers& x, std::size_t first, std::int64_t count,
                                     std::size_t step) {
  const auto all = static_cast<double>(count);
  double mean = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) mean += x[first + i * step] / all;
  for (std::int64_t i = 0; i < count; ++i) squares += std::pow(x[first + i * step] - mean, 2);
  return {mean, 1 / std::sqrt(squares / all + kNormEpsilon)};
}

}  // namespace

Numbers layer_norm(const Norm& norm) {
  Numbers y(norm.x.size());
  const std::size_t columns = norm.shape.columns;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto [mean, inverse] = statistics(norm.x, i - i % columns, norm.shape.columns, 1);
    y[i] = (norm.x[i] - mean) * inverse * norm.gain[i % columns] + norm.shift[i % columns];
  }
  return y;
}

NormGradient layer_norm_gradient(const Norm& norm, const Numbers& dy) {
  const std::size_t columns = norm.shape.columns;
  NormGradient to = {Numbers(dy.size()), Numbers(columns), Numbers(columns)};
  for (std::size_t row = 0; row < dy.size(); row += columns) {
    const auto [mean, inverse] = statistics(norm.x, row, norm.shape.columns, 1);
    double sum = 0, sum_n = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double n = (norm.x[row + c] - mean) * inverse, g = dy[row + c] * norm.gain[c];
      sum += g / norm.shape.columns;
      sum_n += g * n / norm.shape.columns;
      to.dgain[c] += dy[row + c] * n;
      to.dshift[c] += dy[row + c];
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const double n = (norm.x[row + c] - mean) * inverse, g = dy[row + c] * norm.gain[c];
      to.dx[row + c] = (g - sum - n * sum_n) * inverse;
    }
  }
  return to;
}

Numbers batch_norm(const Norm& norm) {
  Numbers y(norm.x.size());
  const std::size_t columns = norm.shape.columns;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = i % columns;
    const auto [mean, inverse] = statistics(norm.x, c, norm.shape.rows, columns);
    y[i] = (norm.x[i] - mean) * inverse * norm.gain[c] + norm.shift[c];
  }
  return y;
}

NormGradient batch_norm_gradient(const Norm& norm, const Numbers& dy) {
  const std::size_t columns = norm.shape.columns;
  const auto rows = static_cast<double>(norm.shape.rows);
  NormGradient to = {Numbers(dy.size()), Numbers(columns), Numbers(columns)};
  for (std::size_t c = 0; c < columns; ++c) {
    const auto [mean, inverse] = statistics(norm.x, c, norm.shape.rows, columns);
    for (std::size_t i = c; i < dy.size(); i += columns) {
      to.dgain[c] += dy[i] * (norm.x[i] - mean) * inverse;
      to.dshift[c] += dy[i];
    }
    for (std::size_t i = c; i < dy.size(); i += columns) {
      const double n = (norm.x[i] - mean) * inverse;
      to.dx[i] = (dy[i] - to.dshift[c] / rows - n * to.dgain[c] / rows) * norm.gain[c] * inverse;
    }
  }
  return to;
}

Numbers causal_softmax(const Numbers& scores, double factor, int tokens) {
  Numbers weights(scores.size(), 0);
  for (std::size_t first = 0; first < scores.size(); first += tokens) {
    const std::size_t seen = first / tokens % tokens + 1;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t c = 0; c < seen; ++c) most = std::max(most, factor * scores[first + c]);
    for (std::size_t c = 0; c < seen; ++c) sum += std::exp(factor * scores[first + c] - most);
    for (std::size_t c = 0; c < seen; ++c) {
      weights[first + c] = std::exp(factor * scores[first + c] - most) / sum;
    }
  }
  return weights;
}

Numbers causal_softmax_gradient(const Numbers& weights, const Numbers& dweights, double factor,
                                int tokens) {
  Numbers dscores(weights.size(), 0);
  for (std::size_t first = 0; first < weights.size(); first += tokens) {
    double sum = 0;  // weights that are not seen are 0
    for (int c = 0; c < tokens; ++c) sum += weights[first + c] * dweights[first + c];
    for (int c = 0; c < tokens; ++c) {
      dscores[first + c] = factor * weights[first + c] * (dweights[first + c] - sum);
    }
  }
  return dscores;
}

namespace {

/// One row of attention: a query of a head, and where its parts lie.
struct Row {
  std::size_t sample, head, token;
};

std::size_t at_part(const Heads& h, const Row& row, std::size_t part, std::size_t number) {
  const auto heads = static_cast<std::size_t>(h.heads), size = static_cast<std::size_t>(h.size);
  const std::size_t token = row.sample * static_cast<std::size_t>(h.tokens) + row.token;
  return ((token * 3 + part) * heads + row.head) * size + number;
}

std::size_t at_output(const Heads& h, const Row& row, std::size_t number) {
  const auto heads = static_cast<std::size_t>(h.heads), size = static_cast<std::size_t>(h.size);
  const std::size_t token = row.sample * static_cast<std::size_t>(h.tokens) + row.token;
  return (token * heads + row.head) * size + number;
}

template <class Each>
void for_rows(const Heads& h, Each each) {
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(h.samples); ++sample) {
    for (std::size_t head = 0; head < static_cast<std::size_t>(h.heads); ++head) {
      for (std::size_t token = 0; token < static_cast<std::size_t>(h.tokens); ++token) {
        each(Row{sample, head, token});
      }
    }
  }
}

/// Returns the weights of the tokens up to that of `row`.
Numbers weights_of(const Numbers& qkv, const Heads& h, const Row& row, double factor) {
  Numbers weights;
  double sum = 0;
  for (std::size_t other = 0; other <= row.token; ++other) {
    double score = 0;
    for (std::size_t n = 0; n < static_cast<std::size_t>(h.size); ++n) {
      score += qkv[at_part(h, row, 0, n)] * qkv[at_part(h, {row.sample, row.head, other}, 1, n)];
    }
    weights.push_back(std::exp(factor * score));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

Numbers attention(const Numbers& qkv, const Heads& shape, double factor) {
  Numbers y(qkv.size() / 3, 0);
  for_rows(shape, [&](const Row& row) {
    const Numbers weights = weights_of(qkv, shape, row, factor);
    for (std::size_t other = 0; other <= row.token; ++other) {
      for (std::size_t n = 0; n < static_cast<std::size_t>(shape.size); ++n) {
        y[at_output(shape, row, n)] +=
            weights[other] * qkv[at_part(shape, {row.sample, row.head, other}, 2, n)];
      }
    }
  });
  return y;
}

Numbers attention_gradient(const Numbers& qkv, const Numbers& dy, const Heads& shape,
                           double factor) {
  Numbers dqkv(qkv.size(), 0);
  for_rows(shape, [&](const Row& row) {
    const Numbers weights = weights_of(qkv, shape, row, factor);
    Numbers slopes(weights.size(), 0);  // of the weights
    double along = 0;
    for (std::size_t other = 0; other <= row.token; ++other) {
      const Row at = {row.sample, row.head, other};
      for (std::size_t n = 0; n < static_cast<std::size_t>(shape.size); ++n) {
        const double slope = dy[at_output(shape, row, n)];
        slopes[other] += slope * qkv[at_part(shape, at, 2, n)];
        dqkv[at_part(shape, at, 2, n)] += slope * weights[other];
      }
      along += weights[other] * slopes[other];
    }
    for (std::size_t other = 0; other <= row.token; ++other) {
      const Row at = {row.sample, row.head, other};
      const double score = weights[other] * (slopes[other] - along) * factor;
      for (std::size_t n = 0; n < static_cast<std::size_t>(shape.size); ++n) {
        dqkv[at_part(shape, row, 0, n)] += score * qkv[at_part(shape, at, 1, n)];
        dqkv[at_part(shape, at, 1, n)] += score * qkv[at_part(shape, row, 0, n)];
      }
    }
  });
  return dqkv;
}

Numbers cross_entropy(const Numbers& logits, const Tokens& targets, int classes, double& loss) {
  Numbers probabilities(logits.size());
  const auto rows = static_cast<double>(targets.size());
  loss = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const std::size_t first = row * classes;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int c = 0; c < classes; ++c) most = std::max(most, logits[first + c]);
    for (int c = 0; c < classes; ++c) sum += std::exp(logits[first + c] - most);
    for (int c = 0; c < classes; ++c) {
      probabilities[first + c] = std::exp(logits[first + c] - most) / sum;
    }
    loss += (std::log(sum) + most - logits[first + targets[row]]) / rows;
  }
  return probabilities;
}

Numbers cross_entropy_gradient(const Numbers& probabilities, const Tokens& targets, int classes) {
  Numbers slopes = probabilities;
  for (std::size_t row = 0; row < targets.size(); ++row) slopes[row * classes + targets[row]] -= 1;
  for (double& slope : slopes) slope /= static_cast<double>(targets.size());
  return slopes;
}

Numbers column_sums(const Numbers& x, int columns) {
  Numbers sums(static_cast<std::size_t>(columns), 0);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % columns] += x[i];
  return sums;
}

namespace {

/// Calls `visit(number of the patches, number of the images)` for each number of the patches; the
/// latter is -1 for the zeros around an image.
template <class Visit>
void for_patches(const Patches& p, Visit visit) {
  const int around = p.kernel / 2;
  std::int64_t made = 0;
  for (int s = 0; s < p.samples; ++s) {
    for (int y = -around; y < p.rows - around; y += p.stride) {
      for (int x = -around; x < p.columns - around; x += p.stride) {
        for (int k = 0; k < p.kernel * p.kernel; ++k) {
          const int py = y + k / p.kernel, px = x + k % p.kernel;
          const bool inside = py >= 0 && py < p.rows && px >= 0 && px < p.columns;
          const std::int64_t pixel = (std::int64_t{s} * p.rows + py) * p.columns + px;
          for (int c = 0; c < p.channels; ++c) visit(made++, inside ? pixel * p.channels + c : -1);
        }
      }
    }
  }
}

}  // namespace

Numbers gather_patches(const Numbers& images, const Patches& p) {
  Numbers patches;
  for_patches(
      p, [&](std::int64_t, std::int64_t from) { patches.push_back(from < 0 ? 0 : images[from]); });
  return patches;
}

Numbers gather_patches_gradient(const Numbers& dpatches, const Patches& p) {
  Numbers dimages(static_cast<std::size_t>(p.samples) * p.rows * p.columns * p.channels, 0);
  for_patches(p, [&](std::int64_t made, std::int64_t from) {
    if (from >= 0) dimages[from] += dpatches[made];
  });
  return dimages;
}

Numbers average_pool(const Numbers& x, Matrix shape, int pixels) {
  Numbers y(static_cast<std::size_t>(shape.size()), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i / shape.columns / pixels * shape.columns + i % shape.columns] += x[i] / pixels;
  }
  return y;
}

void descend(Descent& state, const DescentStep& step) {
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    double &w = state.weights[i], &first = state.first[i], &second = state.second[i];
    double g = state.gradients[i] * step.share;
    state.gradients[i] = 0;
    if (step.kind == 2) {
      first += (1 - double{step.beta1}) * (g - first);
      second += (1 - double{step.beta2}) * (g * g - second);
      w -= step.rate * (first * step.unbias1 / (std::sqrt(second * step.unbias2) + step.epsilon) +
                        step.decay * w);
      continue;
    }
    g += step.decay * w;
    if (step.kind == 1) g = first = step.momentum * first + g;
    w -= step.rate * g;
  }
}

}  // namespace interlock::cuda::reference

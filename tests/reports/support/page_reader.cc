// Finds, decodes and expands the data of a page.
// SPDX-License-Identifier: Apache-2.0
#include "tests/reports/support/page_reader.h"

#include <zlib.h>

#include <stdexcept>

#include "tests/support/base64.h"

namespace interlock {
namespace {

std::string expanded(const std::string& packed) {
  for (std::size_t size = 1 << 16;; size *= 4) {
    std::string bytes(size, '\0');
    auto length = static_cast<uLongf>(size);
    const int state = uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                                 reinterpret_cast<const Bytef*>(packed.data()), packed.size());
    if (state == Z_BUF_ERROR && size < (std::size_t{1} << 32)) continue;
    if (state != Z_OK) throw std::runtime_error("the page's columns do not expand");
    bytes.resize(length);
    return bytes;
  }
}

}  // namespace

std::vector<int> PageScenario::counters(const nlohmann::json& place) const {
  std::vector<int> numbers = column<int>(place);
  for (std::size_t i = 1; i < numbers.size(); ++i) numbers[i] += numbers[i - 1];
  return numbers;
}

std::vector<double> PageScenario::span_starts(const nlohmann::json& spans) const {
  std::vector<float> duration;
  if (spans.contains("duration")) duration = column<float>(spans["duration"]);
  const auto gap = column<float>(spans["gap"]);
  const auto op = column<int>(spans["op"]);
  std::vector<double> starts;
  double now = json["range"][0];
  for (std::size_t i = 0; i < gap.size(); ++i) {
    starts.push_back(now += gap[i]);
    now += duration.empty() ? json["ops"][op[i]]["duration"].get<double>() : duration[i];
  }
  return starts;
}

std::vector<PageScenario> scenarios_of_page(const std::string& page) {
  const std::string open = "<script type=\"application/scenario+json\">";
  std::vector<PageScenario> scenarios;
  for (std::size_t at = page.find(open); at != page.npos; at = page.find(open, at + 1)) {
    const std::size_t begin = at + open.size();
    PageScenario scenario;
    scenario.json =
        nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
    scenario.columns = expanded(decode_base64(scenario.json["columns"].get<std::string>()));
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

}  // namespace interlock

// Reads powers and prices of devices, machines and clusters.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/running_costs_reader.h"

#include "hardware/devices/money.h"

namespace interlock {
namespace {

constexpr Watts kMostPower(1e9);
constexpr double kMostPrice = 1e9;  // of an hour
constexpr const char* kPriceForm = "a price of a device and hour such as \"2.50 USD/h\"";

/// "12.5 EUR/h" in parts; nothing if it is anything else.
std::optional<HourlyPrice> parse_price(std::string_view text) {
  if (!text.ends_with("/h")) return std::nullopt;
  text.remove_suffix(2);
  const std::optional<Money> hour = parse_money(text);
  if (!hour) return std::nullopt;
  return HourlyPrice{hour->amount, hour->currency};
}

/// Returns a member that is a power in a sane range.
std::optional<Watts> power_at(Section& reader, std::string_view key) {
  const auto node = reader.get(key);
  if (!node) return std::nullopt;
  const auto power = read_watts(*node, reader.diagnostics());
  if (!power || *power <= kMostPower) return power;
  report(reader.diagnostics(), *node,
         "out of range; expected 0 W to 1 GW, got " + described(*node->value));
  return std::nullopt;
}

void check_order(const JsonNode& node, const DevicePower& power, Diagnostics& diagnostics) {
  if (power.idle <= power.busy) return;
  report(diagnostics, node,
         "a device draws more when idle than when busy; expected \"busy\" to be at least \"idle\"");
}

}  // namespace

const std::vector<ContractObject>& power_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      {.name = "cluster.power",
       .meaning = "What the machine draws; see [power and prices](long-runs.md#power-and-prices).",
       .keys = {{"busy", power(), "the device's", "Of a device that executes anything."},
                {"idle", power(), "the device's", "Of a device that waits."},
                {"link", power(), "unknown, and left out",
                 "Of a one-way link while it carries bytes at its full speed."},
                {"node", power(), "unknown, and left out",
                 "Of all of a node but its devices, which share it evenly."},
                {"pue", number(1, 10), "1",
                 "What the building draws, over what the machine draws."}}},
      {.name = "cluster.device.power",
       .meaning = "What a device draws.",
       .keys = {{"busy", power(), "required", "While it executes anything."},
                {"idle", power(), "required", "While it waits."}}}};
  return objects;
}

std::vector<ContractKey> running_cost_keys(const std::string& otherwise) {
  using namespace contract;
  return {{"power", object("cluster.power"), otherwise,
           "What the machine draws. Each key takes the place of the machine's, or of its "
           "device's."},
          {"price", price(), otherwise,
           "Price of one device for an hour, with all around it, in any currency."}};
}

std::optional<HourlyPrice> read_hourly_price(const JsonNode& node, Diagnostics& diagnostics) {
  const bool text = node.value->kind == JsonValue::Kind::String;
  std::optional<HourlyPrice> price = text ? parse_price(node.value->text) : std::nullopt;
  if (price && price->amount >= 0 && price->amount <= kMostPrice) return price;
  std::string wrong = "not a number with a currency of three capital letters and \"/h\"";
  if (price) wrong = price->amount < 0 ? "must not be negative" : "out of range";
  if (node.value->kind == JsonValue::Kind::Number) wrong = "a plain number has no currency";
  report(diagnostics, node, wrong + "; expected " + kPriceForm + ", got " + described(*node.value));
  return std::nullopt;
}

std::optional<DevicePower> read_device_power(Section& device) {
  const auto node = device.get("power");
  if (!node) return std::nullopt;
  Section reader(contract_object(power_contract(), "cluster.device.power"), *node,
                 device.diagnostics());
  for (const char* key : {"busy", "idle"}) reader.require(key, "a power such as \"400 W\"");
  const std::optional<Watts> busy = power_at(reader, "busy"), idle = power_at(reader, "idle");
  reader.finish();
  if (!busy || !idle) return std::nullopt;
  check_order(*node, {*busy, *idle}, device.diagnostics());
  return DevicePower{*busy, *idle};
}

void read_running_costs(Section& machine, std::optional<DevicePower>& device, MachinePower& power,
                        std::optional<HourlyPrice>& price) {
  if (const auto node = machine.get("price")) {
    price = read_hourly_price(*node, machine.diagnostics());
  }
  const auto node = machine.get("power");
  if (!node) return;
  Section reader(contract_object(power_contract(), "cluster.power"), *node, machine.diagnostics());
  if (const auto watts = power_at(reader, "node")) power.node = watts;
  if (const auto watts = power_at(reader, "link")) power.link = watts;
  power.pue = reader.number("pue", power.pue);
  const std::optional<Watts> busy = power_at(reader, "busy"), idle = power_at(reader, "idle");
  reader.finish();
  if (!busy && !idle) return;
  if (!device && !(busy && idle)) {
    if (reader.get(busy ? "idle" : "busy")) return;  // it is wrong, which is said
    report(reader.diagnostics(), *node,
           "the device's other power is unknown; expected \"busy\" and \"idle\"");
    return;
  }
  const DevicePower own = device.value_or(DevicePower{});
  device = DevicePower{busy.value_or(own.busy), idle.value_or(own.idle)};
  check_order(*node, *device, reader.diagnostics());
}

}  // namespace interlock

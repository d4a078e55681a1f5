// PipeDream graph: reads nodes and edges, and puts them into a chain.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "reports/imports/layer_tables.h"

namespace interlock {
namespace {

struct Node {
  std::string id, operation;
  double forward = 0, backward = 0, activation = 0, parameters = 0;
  std::vector<std::size_t> reads, read_by;
};

struct Graph {
  std::vector<Node> nodes;
  std::map<std::string, std::size_t> by_id;
};

[[noreturn]] void fail(const std::string& file, int line, const std::string& message) {
  throw Error(file + ":" + std::to_string(line) + ": " + message);
}

/// Returns a number, or the sum of a list of them: "[1.0; 2.0]".
double amount(const std::string& attributes, const char* name, const std::string& file, int line) {
  const std::string key = std::string(name) + "=";
  const std::size_t found = attributes.find(key);
  const std::size_t from = found == attributes.npos ? attributes.size() : found + key.size();
  const bool several = from < attributes.size() && attributes[from] == '[';
  const std::size_t end =
      several ? attributes.find(']', from) : attributes.find_first_not_of("-+.0123456789eE", from);
  std::string list = attributes.substr(from, end == attributes.npos ? end : end - from);
  if (list.empty() || (several && end == attributes.npos)) {
    fail(file, line, std::string("a node without ") + name + "; expected a line of PipeDream's");
  }
  double sum = 0;
  for (char& c : list) c = c == '[' || c == ']' || c == ';' || c == ',' ? ' ' : c;
  std::istringstream numbers(list);
  for (std::string word; numbers >> word;) {
    double one = 0;
    const char* const past = word.data() + word.size();
    const auto [rest, failed] = std::from_chars(word.data(), past, one);
    if (failed != std::errc() || rest != past || !(one >= 0) || one > 1e15) {
      fail(file, line,
           std::string(name) + ": expected a number from 0 to 1e15, got " + in_quotes(word));
    }
    sum += one;
  }
  return sum;
}

void add_node(Graph& graph, const std::vector<std::string>& parts, const std::string& file,
              int line) {
  const std::string& attributes = parts.back();
  Node node = {.id = parts[0], .operation = parts[1]};
  node.forward = amount(attributes, "forward_compute_time", file, line);
  node.backward = amount(attributes, "backward_compute_time", file, line);
  node.activation = amount(attributes, "activation_size", file, line);
  node.parameters = amount(attributes, "parameter_size", file, line);
  if (!graph.by_id.insert({node.id, graph.nodes.size()}).second) {
    fail(file, line, "a second node " + in_quotes(node.id));
  }
  graph.nodes.push_back(node);
}

std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> parts;
  std::size_t begin = line.find_first_not_of(" \t");
  const std::size_t stop = line.find_last_not_of(" \t\r") + 1;
  while (begin < stop) {
    const std::size_t end = std::min(line.find(" -- ", begin), stop);
    parts.push_back(line.substr(begin, end - begin));
    begin = end + 4;
  }
  return parts;
}

Graph read_graph(const std::string& text, const std::string& file) {
  Graph graph;
  std::vector<std::pair<int, std::vector<std::string>>> edges;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> parts = parts_of(line);
    if (parts.empty()) continue;
    const bool edge = line.front() == '\t' || line.front() == ' ';
    if (edge && parts.size() == 2) {
      edges.push_back({number, parts});
    } else if (!edge && parts.size() >= 3) {
      add_node(graph, parts, file, number);
    } else {
      fail(file, number, "neither a node nor an edge of PipeDream's graphs");
    }
  }
  for (const auto& [line, ends] : edges) {
    for (const std::string& end : ends) {
      if (graph.by_id.count(end) == 0) fail(file, line, "no node " + in_quotes(end));
    }
    const std::size_t from = graph.by_id[ends[0]], to = graph.by_id[ends[1]];
    graph.nodes[from].read_by.push_back(to);
    graph.nodes[to].reads.push_back(from);
  }
  if (graph.nodes.empty()) fail(file, 1, "no nodes; expected a graph of PipeDream's profiler");
  return graph;
}

/// Numbers in names in order: node2 before node10.
bool earlier(const Node& a, const Node& b) {
  return std::pair(a.id.size(), a.id) < std::pair(b.id.size(), b.id);
}

/// Returns the nodes in an order in which each comes after those that it reads; among several that
/// could be next, the first by name.
std::vector<std::size_t> in_order(const Graph& graph, const std::string& file) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return earlier(graph.nodes[a], graph.nodes[b]);
  };
  std::set<std::size_t, decltype(before)> ready(before);
  std::vector<std::size_t> waits, order;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    waits.push_back(graph.nodes[i].reads.size());
    if (waits.back() == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t reader : graph.nodes[next].read_by) {
      if (--waits[reader] == 0) ready.insert(reader);
    }
  }
  if (order.size() < graph.nodes.size()) fail(file, 1, "edges go round; expected a graph without");
  return order;
}

TableModule module_of(const Node& node) {
  return {.name = node.id + " " + node.operation.substr(0, node.operation.find('(')),
          .forward = Seconds(node.forward / 1e3),
          .backward = Seconds(node.backward / 1e3),
          .stash = Bytes(node.activation),
          .parameters = Bytes(node.parameters)};
}

void append(TableModule& cell, const TableModule& next) {
  const std::string first = cell.name.substr(0, cell.name.find(' '));
  cell.name = first + " to " + next.name.substr(0, next.name.find(' '));
  cell.forward += next.forward;
  cell.backward += next.backward;
  cell.stash += next.stash;
  cell.parameters += next.parameters;
}

}  // namespace

std::vector<TableModule> read_pipedream_graph(const std::string& text, const std::string& file,
                                              bool cells) {
  const Graph graph = read_graph(text, file);
  const std::vector<std::size_t> order = in_order(graph, file);
  std::vector<std::size_t> unread;  // readers that a node's tensor waits for
  for (const Node& node : graph.nodes) unread.push_back(node.read_by.size());
  std::set<std::size_t> alive;
  std::vector<TableModule> modules;
  bool open = false;  // the last cell goes on
  for (const std::size_t i : order) {
    for (const std::size_t read : graph.nodes[i].reads) {
      if (--unread[read] == 0) alive.erase(read);
    }
    if (unread[i] > 0) alive.insert(i);
    if (open) {
      append(modules.back(), module_of(graph.nodes[i]));
    } else {
      modules.push_back(module_of(graph.nodes[i]));
    }
    modules.back().output = Bytes(0);
    for (const std::size_t tensor : alive) {
      modules.back().output += Bytes(graph.nodes[tensor].activation);
    }
    open = cells && alive.size() > 1;
  }
  return modules;
}

}  // namespace interlock

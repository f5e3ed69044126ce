#include "documents/aitemplate/sorted_graph.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace tenon::documents::aitemplate {
namespace {

// Depth-first topological order.
std::vector<std::size_t> walk(const SortGraph& graph) {
  std::vector<std::size_t> order;
  std::vector<bool> was_met(graph.tensors.size(), false);
  std::vector<std::pair<std::size_t, bool>> stack;
  for (auto output = graph.outputs.rbegin(); output != graph.outputs.rend(); ++output) {
    stack.emplace_back(*output, false);
  }
  while (!stack.empty()) {
    const auto [tensor, is_done] = stack.back();
    stack.pop_back();
    if (is_done) {
      order.push_back(tensor);
      for (const std::size_t writer : graph.tensors[tensor].writers) {
        for (const std::size_t sibling : graph.operators[writer].outputs) {
          if (!was_met[sibling]) stack.emplace_back(sibling, false);
        }
      }
      continue;
    }
    if (was_met[tensor]) continue;
    was_met[tensor] = true;
    stack.emplace_back(tensor, true);
    for (const std::size_t writer : graph.tensors[tensor].writers) {
      // The deepest operand is pushed last and visited first; ties keep operand order.
      std::vector<std::size_t> inputs = graph.operators[writer].inputs;
      std::stable_sort(inputs.begin(), inputs.end(), [&](std::size_t a, std::size_t b) {
        return graph.tensors[a].depth > graph.tensors[b].depth;
      });
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input)
        stack.emplace_back(*input, false);
    }
  }
  return order;
}

std::size_t different_inputs(const SortGraph::Operator& operation) {
  std::vector<std::size_t> inputs = operation.inputs;
  std::sort(inputs.begin(), inputs.end());
  return static_cast<std::size_t>(std::unique(inputs.begin(), inputs.end()) - inputs.begin());
}

}  // namespace

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

std::vector<std::size_t> sorted_tensors(const SortGraph& graph) {
  const std::vector<std::size_t> met = walk(graph);
  std::vector<std::size_t> missing(graph.tensors.size(), 0);
  std::vector<bool> is_needed(graph.tensors.size(), false), is_listed(graph.tensors.size(), false);
  for (const std::size_t tensor : met) {
    is_needed[tensor] = true;
    for (const std::size_t writer : graph.tensors[tensor].writers) {
      missing[tensor] += different_inputs(graph.operators[writer]);
    }
  }
  // min-heap by inverse size, then age
  using Entry = std::tuple<std::uint64_t, std::size_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::size_t age = 0;
  const auto push = [&](std::size_t tensor) {
    ready.emplace(std::numeric_limits<std::uint64_t>::max() - graph.tensors[tensor].bytes, age++,
                  tensor);
  };
  std::vector<std::size_t> sorted;
  for (const std::size_t tensor : met) {
    if (missing[tensor] > 0) continue;
    sorted.push_back(tensor);
    is_listed[tensor] = true;
    push(tensor);
  }
  while (!ready.empty()) {
    const std::size_t tensor = std::get<2>(ready.top());
    ready.pop();
    if (!is_listed[tensor]) sorted.push_back(tensor);
    is_listed[tensor] = true;
    for (const std::size_t reader : graph.tensors[tensor].readers) {
      for (const std::size_t next : graph.operators[reader].outputs) {
        if (is_needed[next] && missing[next] > 0 && --missing[next] == 0) push(next);
      }
    }
  }
  return sorted;
}

}  // namespace tenon::documents::aitemplate

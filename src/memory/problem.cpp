#include "memory/problem.h"

#include "base/error.h"

#include <cmath>

namespace tenon::memory {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
// Sums of many such sizes still fit 64 bits.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 56;

}  // namespace

void add_order_constraint(Problem& problem, std::uint32_t item, std::uint32_t later) {
  const auto mark = static_cast<std::uint32_t>(problem.values.size());
  problem.values.push_back({"", 0, false, false});
  problem.items[item].makes.push_back(mark);
  problem.items[later].reads.push_back(mark);
}

std::vector<std::uint32_t> Problem::makers() const {
  std::vector<std::uint32_t> makers(values.size(), kNone);
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    for (std::uint32_t v : items[i].makes) makers[v] = i;
  }
  return makers;
}

double Problem::seconds() const {
  double sum = 0;
  for (const Item& item : items) sum += item.alternatives.front().seconds;
  return sum;
}

void verify(const Problem& problem) {
  std::vector<char> is_made(problem.values.size(), 0);
  std::uint64_t total = problem.fixed_bytes;
  for (const PlannedValue& value : problem.values) {
    if (value.bytes > kMaxBytes || (total += value.bytes) > kMaxBytes) {
      throw Error("the sizes of a memory problem add up to more than any memory has")
          .at("value '", value.name, "'");
    }
  }
  for (const Item& item : problem.items) {
    const std::string place = concat("item '", item.name, "'");
    for (std::uint32_t v : item.reads) {
      if (v >= problem.values.size() || is_made[v] == 0) {
        throw Error("an item reads a value that no item before it makes").at(place);
      }
    }
    for (std::uint32_t v : item.makes) {
      if (v >= problem.values.size() || is_made[v] != 0) {
        throw Error("an item makes a value that is made already").at(place);
      }
      is_made[v] = 1;
    }
    if (item.alternatives.empty()) throw Error("an item has no way to be done").at(place);
    for (const Implementation& alternative : item.alternatives) {
      if (!std::isfinite(alternative.seconds) || alternative.seconds < 0 ||
          alternative.workspace_bytes > kMaxBytes) {
        throw Error("a way takes a time or a workspace that cannot be").at(place);
      }
    }
    for (const auto& [result, operand] : item.may_share) {
      if (result >= problem.values.size() || operand >= problem.values.size() ||
          problem.values[result].bytes != problem.values[operand].bytes) {
        throw Error("a result may only overwrite an operand of its size").at(place);
      }
    }
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    if (is_made[v] == 0) {
      throw Error("no item makes a value").at("value '", problem.values[v].name, "'");
    }
  }
}

}  // namespace tenon::memory

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::memory {

/// Something that takes bytes from its making to its last use.
struct Value {
  std::string name;
  std::uint64_t bytes = 0;
  /// kept to the end
  bool is_output = false;
  bool may_swap = true;
};

/// One way to do an item's work.
struct Way {
  double seconds = 0;
  std::uint64_t workspace_bytes = 0;
};

/// A piece of work. What it reads that is no value of the problem (parameters, inputs) lies
/// elsewhere.
struct Item {
  std::string name;
  /// values, once each
  std::vector<std::uint32_t> reads, makes;
  /// A result and the operand that it may overwrite; of equal bytes.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> may_share;
  bool may_repeat = false;
  /// at least one; the first is the usual one
  std::vector<Way> ways;
  /// What whoever asks calls it; stays with it in any order of the items.
  std::uint32_t number = 0;
};

/// The way to a larger, slower memory. Both directions work at once.
struct Link {
  std::string name;
  double bytes_per_s = 0;
  double latency_s = 0;
};

/// What the planner knows: numbers only. Items stand in an order in which they can run.
struct Problem {
  std::string name;
  std::vector<Value> values;
  std::vector<Item> items;
  std::optional<Link> link;
  /// What lies outside the arena all the time: parameters, inputs.
  std::uint64_t fixed_bytes = 0;

  /// The item that makes each value.
  std::vector<std::uint32_t> makers() const;
  /// of every item once, in its first way
  double seconds() const;
};

/// Throws Error where an item reads what is not made before it, a value is made twice or never, or
/// an index, a size or a time is out of range.
void verify(const Problem& problem);
/// Keeps an item before another one that reads nothing it makes: by a value of no bytes.
void put_before(Problem& problem, std::uint32_t item, std::uint32_t later);

/// One step of a plan.
struct Event {
  enum class Kind : std::uint8_t {
    /// item `index`, in its way `way`
    Run,
    /// begins to copy value `index` to the slower memory; work goes on
    Out,
    /// waits for that copy: the bytes are free afterwards
    Free,
    /// begins to copy it back; whoever reads it waits for that
    In,
  } kind = Kind::Run;
  std::uint32_t index = 0, way = 0;
  bool operator==(const Event&) const = default;
};

/// A value from one making (or copy back) to its last use.
struct Instance {
  std::uint32_t value = 0;
  /// event
  std::uint32_t made_at = 0;
  bool operator==(const Instance&) const = default;
};

/// Bytes of the arena that are needed during the events [begin, end).
struct Storage {
  std::uint64_t bytes = 0, offset = 0;
  std::uint32_t begin = 0, end = 0;
  /// One after the other, each but the first in place of the one before; none: workspace of the
  /// item that runs at `begin`.
  std::vector<Instance> instances;
  bool operator==(const Storage&) const = default;
};

struct Plan {
  std::vector<Event> events;
  std::vector<Storage> storages;
  std::uint64_t arena_bytes = 0;
  std::uint64_t max_live_bytes = 0;
  double seconds = 0;
  bool operator==(const Plan&) const = default;
};

/// The text form, which `parse_plan` reads back; names are for people only.
std::string print(const Plan& plan, const Problem& problem);
/// Throws Error with the line where the text is no plan.
Plan parse_plan(std::string_view text, std::string_view source);

}  // namespace tenon::memory

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::memory {

/// A value that takes bytes from its definition to its last use.
struct PlannedValue {
  std::string name;
  std::uint64_t bytes = 0;
  /// Live to the end.
  bool is_output = false;
  bool may_swap = true;
};

/// One implementation of an item.
struct Implementation {
  double seconds = 0;
  std::uint64_t workspace_bytes = 0;
};

/// A unit of work. `reads` lists values of the problem only; parameters and inputs live outside the
/// arena.
struct Item {
  std::string name;
  /// Values, without duplicates.
  std::vector<std::uint32_t> reads, makes;
  /// Pairs of a result and an operand of equal bytes that it may overwrite.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> may_share;
  bool may_repeat = false;
  /// At least one; the first is the default.
  std::vector<Implementation> alternatives;
  /// The caller's identifier; preserved by reordering.
  std::uint32_t number = 0;
};

/// A link to a larger, slower memory. Both directions transfer concurrently.
struct Link {
  std::string name;
  double bytes_per_s = 0;
  double latency_s = 0;
};

/// Input of the memory planner: sizes, times and dependencies. Items are in a valid execution
/// order.
struct Problem {
  std::string name;
  std::vector<PlannedValue> values;
  std::vector<Item> items;
  std::optional<Link> link;
  /// Bytes outside the arena for the whole run: parameters and inputs.
  std::uint64_t fixed_bytes = 0;

  /// Returns the item that makes each value.
  std::vector<std::uint32_t> makers() const;
  /// Total time of all items, each with its first way.
  double seconds() const;
};

/// Throws Error if an item reads a value that is not made before it, if a value is made twice or
/// never, or if an index, size or time is out of range.
void verify(const Problem& problem);
/// Orders an item before another one without a data dependency, by a value of zero bytes.
void add_order_constraint(Problem& problem, std::uint32_t item, std::uint32_t later);

/// One step of a plan.
struct Event {
  enum class Kind : std::uint8_t {
    /// Runs item `index` by its way `alternative`.
    Run,
    /// Starts copying value `index` to slow memory (offload); items continue meanwhile.
    Out,
    /// Waits for that copy and frees the bytes.
    Free,
    /// Starts copying the value back; its first reader waits for the copy.
    In,
  } kind = Kind::Run;
  std::uint32_t index = 0, alternative = 0;
  bool operator==(const Event&) const = default;
};

/// One lifetime of a value: from a definition, recomputation or copy back to its last use.
struct Instance {
  std::uint32_t value = 0;
  /// Event.
  std::uint32_t made_at = 0;
  bool operator==(const Instance&) const = default;
};

/// Bytes of the arena that are reserved during the events [begin, end).
struct ArenaBlock {
  std::uint64_t bytes = 0, offset = 0;
  std::uint32_t begin = 0, end = 0;
  /// Consecutive occupants, each overwriting its predecessor in place. Empty: the workspace of the
  /// item that runs at `begin`.
  std::vector<Instance> instances;
  bool operator==(const ArenaBlock&) const = default;
};

struct Plan {
  std::vector<Event> events;
  std::vector<ArenaBlock> blocks;
  std::uint64_t arena_bytes = 0;
  std::uint64_t max_live_bytes = 0;
  double seconds = 0;
  bool operator==(const Plan&) const = default;
};

/// Returns the text form that `parse_plan` reads; `parse_plan` ignores names.
std::string print(const Plan& plan, const Problem& problem);
/// Throws Error with the line of a syntax error.
Plan parse_plan(std::string_view text, std::string_view source);

}  // namespace tenon::memory

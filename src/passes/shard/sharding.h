#pragma once

#include "ir/type.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::passes {

/// Sharding of a value over the ranks of a group.
struct Sharding {
  enum class Kind : std::uint8_t {
    /// replicated on every rank
    Whole,
    /// rank k holds shard k of equal shards along an axis
    Split,
    /// every rank holds a term of the full shape; the value is their sum
    Partial,
  };
  Kind kind = Kind::Whole;
  /// of Split
  std::size_t axis = 0;

  static Sharding whole() { return {}; }
  static Sharding split(std::size_t along) { return {Kind::Split, along}; }
  static Sharding partial() { return {Kind::Partial, 0}; }
  bool is_whole() const { return kind == Kind::Whole; }
  bool is_split() const { return kind == Kind::Split; }
  bool is_partial() const { return kind == Kind::Partial; }
  auto operator<=>(const Sharding&) const = default;
};

/// Returns "whole", "split along axis 1" or "partial sums".
std::string to_string(const Sharding& sharding);

/// Returns whether that number of ranks can hold a value of the type in this sharding.
bool can_hold(const TensorType& type, const Sharding& sharding, std::int64_t ranks);
/// Returns the type of one rank's shard. Requires `can_hold`.
TensorType part_of(TensorType type, const Sharding& sharding, std::int64_t ranks);

}  // namespace tenon::passes

#pragma once

#include "ir/type.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tenon {

/// How the ranks of a group hold a value between them.
struct Sharding {
  enum class Kind : std::uint8_t {
    /// every rank has all of it
    Whole,
    /// rank k has part k of as many equal ones along an axis
    Split,
    /// every rank has a term of the same shape; the value is their sum
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

/// "whole", "split along axis 1", "partial sums".
std::string to_string(const Sharding& sharding);

/// Whether a value of the type can be held so by so many ranks.
bool can_hold(const TensorType& type, const Sharding& sharding, std::int64_t ranks);
/// What one rank has of it. Asks that it can be held so.
TensorType part_of(TensorType type, const Sharding& sharding, std::int64_t ranks);

}  // namespace tenon

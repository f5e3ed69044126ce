#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Attributes of a node for writers of formats: stated, or the operator's default.
namespace tenon::frontends {

/// Null for an attribute that is neither stated nor has a default.
const AttrValue* attr_of(const Node& node, std::string_view name);
template <class T>
const T* attr_of(const Node& node, std::string_view name) {
  const AttrValue* value = attr_of(node, name);
  return value == nullptr ? nullptr : std::get_if<T>(value);
}
bool flag_of(const Node& node, std::string_view name);
/// "" for a missing attribute
std::string text_of(const Node& node, std::string_view name);
double real_of(const Node& node, std::string_view name);
/// Nullopt for an attribute that depends on extents.
std::optional<std::int64_t> integer_of(const Node& node, std::string_view name);
std::optional<std::vector<std::int64_t>> integers_of(const Node& node, std::string_view name);

/// Windows of a convolution or pool over spatial axes, with all numbers explicit: pads are begins,
/// then ends. Convolutions have their kernel as an operand.
struct WindowNumbers {
  std::vector<std::int64_t> kernel, strides, dilations, pads;

  /// Returns whether the pads at both ends are equal.
  bool has_same_pads() const;
};
/// Returns nullopt if a number depends on extents or on `auto_pad`.
std::optional<WindowNumbers> window_numbers(const Node& node, std::size_t axes);

/// Renames the letters of an einsum's equation in order of appearance, for comparisons.
std::string plain_equation(std::string_view equation);

}  // namespace tenon::frontends

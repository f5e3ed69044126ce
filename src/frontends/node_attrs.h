#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A node's attributes as writers ask for them: as stated, or at the operator's default.
namespace tenon {

/// Null where it is neither stated nor has a default.
const AttrValue* attr_of(const Node& node, std::string_view name);
template <class T>
const T* attr_of(const Node& node, std::string_view name) {
  const AttrValue* value = attr_of(node, name);
  return value == nullptr ? nullptr : std::get_if<T>(value);
}
bool flag_of(const Node& node, std::string_view name);
/// "" where there is none
std::string text_of(const Node& node, std::string_view name);
double real_of(const Node& node, std::string_view name);
/// Nothing where one depends on extents.
std::optional<std::int64_t> integer_of(const Node& node, std::string_view name);
std::optional<std::vector<std::int64_t>> integers_of(const Node& node, std::string_view name);

/// The windows of a convolution or pool over some spatial axes, every number written out: begins,
/// then ends of pads. Convolutions have their kernel as an operand.
struct WindowNumbers {
  std::vector<std::int64_t> kernel, strides, dilations, pads;

  /// as many behind as before
  bool has_same_pads() const;
};
/// Nothing where a number depends on extents or on `auto_pad`.
std::optional<WindowNumbers> window_numbers(const Node& node, std::size_t axes);

/// An einsum's equation with its letters in the order they first appear, to be compared.
std::string plain_equation(std::string_view equation);

}  // namespace tenon

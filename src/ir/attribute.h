#pragma once

#include "ir/constant.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::inline ir {

/// Value of an attribute. Integers are constant dims.
using AttrValue = std::variant<bool, Dim, double, std::string, DType, Dims, std::vector<double>,
                               std::vector<std::string>, Constant, Type>;

/// Kind of an attribute's value, in the order of AttrValue's alternatives. `Word` is an enumerated
/// bare word, stored as a string.
enum class AttrKind : std::uint8_t {
  Bool,
  Integer,
  Real,
  Text,
  Element,
  Integers,
  Reals,
  Texts,
  Constant,
  Type,
  Word,
};

bool equal(const AttrValue& a, const AttrValue& b);

/// Attributes of a node, sorted by name. Attributes equal to their default are absent.
class Attributes {
 public:
  using Item = std::pair<std::string, AttrValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Item> items);

  const AttrValue* find(std::string_view name) const;
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  bool is_empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool operator==(const Attributes& other) const;

 private:
  std::vector<Item> items_;
};

/// Replaces symbols in the attributes' extents, lists of extents, and types.
Attributes substitute(const Attributes& attrs, const DimBindings& values);

}  // namespace tenon::inline ir

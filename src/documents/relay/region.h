#pragma once

#include "documents/relay/ast.h"
#include "tenon/builder.h"

#include <unordered_map>
#include <vector>

namespace tenon::documents::relay {

/// A graph under construction, the main one or the body of a branch, and its captured outer values.
class Region {
 public:
  explicit Region(Builder& builder, Region* around = nullptr)
      : builder_(builder), around_(around) {}

  Builder& builder() const { return builder_; }
  /// Returns the value in this graph; an outer value becomes an input once.
  Var local(Var value);
  /// Adds inputs for all captures of another branch, in the same order.
  void capture_all(const Region& other);
  /// outer values
  const std::vector<Var>& captured() const { return captured_; }

  Var find_constant(ExprId constant) const;
  void add_constant(ExprId constant, Var value) { constants_[constant] = value; }

 private:
  Var capture(Var outer);

  Builder& builder_;
  Region* around_;
  std::vector<Var> captured_;
  std::unordered_map<std::uint32_t, Var> inputs_;
  std::unordered_map<ExprId, Var> constants_;
};

}  // namespace tenon::documents::relay

#pragma once

#include "frontends/relay/ast.h"
#include "tenon/builder.h"

#include <unordered_map>
#include <vector>

namespace tenon::relay {

/// One graph in the making, the whole or the body of a branch, and what it takes from around it.
class Region {
 public:
  explicit Region(Builder& builder, Region* around = nullptr)
      : builder_(builder), around_(around) {}

  Builder& builder() const { return builder_; }
  /// The value in this graph; one from around becomes an input, the same each time.
  Var local(Var value);
  /// Makes inputs for all that another branch takes in, in the same order.
  void capture_all(const Region& other);
  const std::vector<Var>& captured() const {
    return captured_;
    /// as the graph around names them
  }

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

}  // namespace tenon::relay

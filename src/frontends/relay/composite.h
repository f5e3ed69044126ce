#pragma once

#include "frontends/relay/ast.h"
#include "ir/graph.h"
#include "tenon/builder.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::relay {

/// One of Tenon's operators that Relay has no word for. Relay's own way to keep such a group
/// together is a function with the attribute `Composite`; its body says the same in Relay's words.
struct Composite {
  std::string op;
  std::string attributes;        ///< in Tenon's text form
  std::vector<bool> is_missing;  ///< operands that are left out, by position
  std::size_t result_count = 1;
};

inline constexpr std::string_view kCompositePrefix = "tenon.";

/// What a function stands for, if it says so.
std::optional<Composite> composite_of(const Expr& function);
std::vector<Attribute> composite_attributes(const Composite& composite);
/// Throws Error where the operator does not take these.
std::vector<Var> build_composite(Builder& builder, const Composite& composite,
                                 const std::vector<Var>& values, std::vector<Graph> bodies = {});

}  // namespace tenon::relay

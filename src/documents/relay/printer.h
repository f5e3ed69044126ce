#pragma once

#include "documents/relay/ast.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::relay {

/// Numbers that the reference's printer assigns.
struct Numbering {
  /// the node of `%0`, `%1`, …
  std::vector<ExprId> lines;
  /// the node of `meta[relay.Constant][0]`, …
  std::vector<ExprId> constants;
};

/// Prints a module like the reference's printer: a line per node at its first use, constants
/// numbered in visiting order. `numbering` receives the assigned numbers.
std::string print_module(const RelayModule& module, CommentStyle style,
                         Numbering* numbering = nullptr);

}  // namespace tenon::documents::relay

#pragma once

#include "frontends/relay/ast.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::relay {

/// What the reference's printer gives out as it goes.
struct Numbering {
  /// the node of `%0`, `%1`, …
  std::vector<ExprId> lines;
  /// the node of `meta[relay.Constant][0]`, …
  std::vector<ExprId> constants;
};

/// The text of a module, as the reference's printer writes it: a line for a node when it is first
/// read, constants numbered as they are visited. `numbering` takes what got which number.
std::string print_module(const Module& module, CommentStyle style, Numbering* numbering = nullptr);

}  // namespace tenon::relay

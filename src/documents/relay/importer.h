#pragma once

#include "documents/findings.h"
#include "documents/relay/ast.h"
#include "ir/graph.h"

#include <string_view>

namespace tenon::documents::relay {

/// Metadata keys of a graph for the parts of a text outside the function.
inline constexpr std::string_view kVersionKey = "relay.version";
inline constexpr std::string_view kIdKey = "relay.id";
inline constexpr std::string_view kFunctionKey = "relay.function";

/// A native Tenon operator is a call of `tenon.OP`, or of a function in Relay's operators marked
/// Composite="tenon.OP"; this attribute of either contains the record of `native_node`. On the
/// program's entry it is a graph that states the types of the inputs.
inline constexpr std::string_view kOwnPrefix = "tenon.", kOwnAttribute = "tenon";

/// Imports the program's entry. Function calls are inlined; constants without data are seeded by
/// index. Throws Error with the position in `text`; of kind Unsupported, with all of them, for
/// unknown operators.
Graph import_module(const RelayModule& module, std::string_view text, std::string_view source);

/// Infers every type and compares it with the comments.
void check_types(const RelayModule& module, std::string_view text, std::string_view source,
                 Findings& findings);

}  // namespace tenon::documents::relay

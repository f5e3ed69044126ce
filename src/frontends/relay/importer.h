#pragma once

#include "frontends/findings.h"
#include "frontends/relay/ast.h"
#include "ir/graph.h"

#include <string_view>

namespace tenon::relay {

/// Keys of a graph's metadata that keep what a text says around its function.
inline constexpr std::string_view kVersionKey = "relay.version";
inline constexpr std::string_view kIdKey = "relay.id";
inline constexpr std::string_view kFunctionKey = "relay.function";

/// An operator of Tenon's own is a call of `tenon.OP`, or of a function that says it in Relay's
/// words and is marked Composite="tenon.OP"; this attribute of either is what `own_node` makes of
/// it. Of the program's entry, it is a graph that states the types of the inputs.
inline constexpr std::string_view kOwnPrefix = "tenon.", kOwnAttribute = "tenon";

/// The graph of the program's entry. Functions are inlined where they are called; constants without
/// data are seeded by their index. Throws Error with the place in `text`; of kind Unsupported,
/// listing them all, where operators are unknown.
Graph import_module(const Module& module, std::string_view text, std::string_view source);

/// Infers every type again and compares it with what the comments say.
void check_types(const Module& module, std::string_view text, std::string_view source,
                 Findings& findings);

}  // namespace tenon::relay

#pragma once

#include "frontends/relay/ast.h"
#include "frontends/relay/token_cursor.h"

#include <string>
#include <string_view>

namespace tenon::relay {

/// Takes a comment that stands directly behind an expression for what it says: `ty=T` its type,
/// `span=name:line:column` where it came from, anything else behind a call the name it had there.
/// Throws Error where a type or span is malformed, or a constant has two types.
void attach_comment(Module& module, ExprId id, const Token& comment, const TokenCursor& cursor);

/// Without white space at the ends, and one blank for any in between.
std::string single_spaced(std::string_view text);

}  // namespace tenon::relay

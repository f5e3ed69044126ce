#pragma once

#include "documents/relay/ast.h"
#include "documents/relay/token_cursor.h"

#include <string>
#include <string_view>

namespace tenon::documents::relay {

/// Interprets a comment after an expression: `ty=T` is its type, `span=name:line:column` its
/// source, any other comment after a call its name in the source. Throws Error for malformed types
/// and spans, and for a constant with two types.
void attach_comment(RelayModule& module, ExprId id, const Token& comment,
                    const TokenCursor& cursor);

/// Trims white space and collapses runs of it to single blanks.
std::string single_spaced(std::string_view text);

}  // namespace tenon::documents::relay

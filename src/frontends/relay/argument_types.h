#pragma once

#include "frontends/relay/import_call.h"

#include <optional>

namespace tenon::relay {

/// The type that an operator gives an argument of which nothing else says one: weights have it of
/// the data and of the call's attributes, as in TVM's own inference. Nothing where they do not
/// tell.
std::optional<RelayType> argument_type(const CallImport& call, std::size_t position);

}  // namespace tenon::relay

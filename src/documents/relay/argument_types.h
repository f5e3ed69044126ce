#pragma once

#include "documents/relay/import_call.h"

#include <optional>

namespace tenon::documents::relay {

/// Infers the type of an untyped argument from its operator, like TVM: weights from the data and
/// the call's attributes. Returns nullopt if these do not determine it.
std::optional<RelayType> argument_type(const CallImport& call, std::size_t position);

}  // namespace tenon::documents::relay

#pragma once

#include "frontends/relay/import_call.h"

#include <optional>

namespace tenon::relay {

Constant scalar_value(const Expr& scalar);

/// The elements of a constant: those of the metadata, or numbers made up for its role that follow
/// from its index alone. Throws Error where nothing says what it is.
Constant constant_value(const Module& module, const Expr& constant, const WeightRole& role);

/// Zeros of a type, to go on with where an operator is not known; nothing where an extent is not.
std::optional<Meaning> blank_of(const RelayType& type, Builder& builder);

}  // namespace tenon::relay

#pragma once

#include "documents/relay/import_call.h"

#include <optional>

namespace tenon::documents::relay {

Constant scalar_value(const RelayExpr& scalar);

/// Returns the elements of a constant: those of the metadata, or numbers seeded for its role by its
/// index. Throws Error for a constant without a type.
Constant constant_value(const RelayModule& module, const RelayExpr& constant,
                        const WeightRole& role);

/// Returns placeholder zeros of a type after an unknown operator; nullopt for unknown extents.
std::optional<ImportedValue> blank_of(const RelayType& type, Builder& builder);

}  // namespace tenon::documents::relay

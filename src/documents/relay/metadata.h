#pragma once

#include "frontends/json.h"
#include "ir/constant.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::relay {

/// Prints the section after `#[metadata]` in the reference's JSON style. `constants` lists the
/// entry of `relay.Constant` for each index.
std::string print_metadata(const frontends::JsonValue& metadata,
                           const std::vector<std::int64_t>& constants);

/// Returns the elements of `meta[relay.Constant][index]`; nullopt if the section lacks them. Throws
/// Error for an entry that is not an array.
std::optional<Constant> metadata_constant(const frontends::JsonValue& metadata, std::int64_t index);

/// Builds a section with these constants.
frontends::JsonValue make_metadata(const std::vector<Constant>& constants);

}  // namespace tenon::documents::relay

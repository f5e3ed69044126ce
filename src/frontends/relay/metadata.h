#pragma once

#include "frontends/json.h"
#include "ir/constant.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::relay {

/// The section behind `#[metadata]` in the reference's own way of writing JSON. `constants` says
/// which entry of `relay.Constant` comes to stand at each index.
std::string print_metadata(const Json& metadata, const std::vector<std::int64_t>& constants);

/// The elements of `meta[relay.Constant][index]`, or nothing if the section does not hold them.
/// Throws Error where it holds something that is no array.
std::optional<Constant> metadata_constant(const Json& metadata, std::int64_t index);

/// A section that holds these constants.
Json make_metadata(const std::vector<Constant>& constants);

}  // namespace tenon::relay

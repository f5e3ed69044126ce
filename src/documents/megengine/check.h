#pragma once

#include "base/page.h"
#include "documents/findings.h"
#include "documents/megengine/index.h"

namespace tenon::documents::megengine {

/// Recomputes the claims of a profile: footprints, order, names, inference, memory, times.
Findings check_profile(const MegEngineProfile& profile, const Index& index);

/// Describes a profile for readers new to the format.
Page describe_profile(const MegEngineProfile& profile, const Index& index);

}  // namespace tenon::documents::megengine

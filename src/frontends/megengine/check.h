#pragma once

#include "base/page.h"
#include "frontends/findings.h"
#include "frontends/megengine/index.h"

namespace tenon::megengine {

/// Computes again what a profile claims: footprints, order, names, inference, memory, times.
Findings check_profile(const Profile& profile, const Index& index);

/// A page about a profile for someone who has never seen one.
Page describe_profile(const Profile& profile, const Index& index);

}  // namespace tenon::megengine

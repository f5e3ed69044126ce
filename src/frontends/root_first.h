#pragma once

#include "frontends/document.h"

namespace tenon {

/// What `document.check()` finds, with the finding in front that explains most of the others: the
/// one after whose repair the fewest are left. Findings without a line in the text stay as they
/// are.
Findings check_root_first(const DocumentFormat& format, const Document& document);

}  // namespace tenon

#pragma once

#include "documents/document.h"

namespace tenon::documents {

/// Returns the findings of `document.check()` with the root cause first: the finding whose repair
/// leaves the fewest others. Findings without a line in the text keep their order.
Findings check_root_first(const DocumentFormat& format, const Document& document);

}  // namespace tenon::documents

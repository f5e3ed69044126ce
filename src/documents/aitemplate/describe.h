#pragma once

#include "base/page.h"
#include "documents/aitemplate/tables.h"

namespace tenon::documents::aitemplate {

/// Describes a dump for readers new to the format.
Page describe_dump(const Dump& dump);

}  // namespace tenon::documents::aitemplate

#pragma once

#include "base/page.h"
#include "frontends/aitemplate/tables.h"

namespace tenon::aitemplate {

/// The dump for someone who has never seen one.
Page describe_dump(const Dump& dump);

}  // namespace tenon::aitemplate

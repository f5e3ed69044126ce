#include "frontends/aitemplate/check.h"

namespace tenon::aitemplate {

Findings check_dump(const Dump&, const SourceMap&) { return {}; }

}  // namespace tenon::aitemplate

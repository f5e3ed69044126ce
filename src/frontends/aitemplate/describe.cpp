#include "frontends/aitemplate/describe.h"

namespace tenon::aitemplate {

Page describe_dump(const Dump&) { return {}; }

}  // namespace tenon::aitemplate

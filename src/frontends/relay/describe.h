#pragma once

#include "base/page.h"
#include "frontends/relay/ast.h"

namespace tenon::relay {

/// What a module is and says, for someone who has never seen Relay.
Page describe_module(const Module& module);

}  // namespace tenon::relay

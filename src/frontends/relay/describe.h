#pragma once

#include "base/page.h"
#include "frontends/relay/ast.h"

namespace tenon::relay {

/// Describes a module for readers new to Relay.
Page describe_module(const Module& module);

}  // namespace tenon::relay

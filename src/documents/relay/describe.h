#pragma once

#include "base/page.h"
#include "documents/relay/ast.h"

namespace tenon::documents::relay {

/// Describes a module for readers new to Relay.
Page describe_module(const RelayModule& module);

}  // namespace tenon::documents::relay

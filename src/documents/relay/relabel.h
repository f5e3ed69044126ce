#pragma once

#include "ir/type.h"
#include "tenon/builder.h"

namespace tenon::documents::relay {

/// Interprets the value's axes as `layout`. Relay states the layout at each operator, a graph in
/// the value's type: restates the type of a value without a layout, or of the value that determines
/// it, and infers dependent types again. A value with readers of different layouts goes through a
/// reshape to its own shape, which drops the layout.
Var relabel(Builder& builder, Var value, const Layout& layout);

}  // namespace tenon::documents::relay

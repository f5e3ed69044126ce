#pragma once

#include "ir/type.h"
#include "tenon/builder.h"

namespace tenon::relay {

/// The value with its axes read as `layout`. In Relay each operator says how it reads its
/// arguments, in a graph the value's type does: the type of a value without a layout, or of what it
/// has its type from, is stated anew, and those that follow from it are inferred again. A value
/// that is read in another way elsewhere is taken through a reshape to its own shape, which forgets
/// the layout.
Var relabel(Builder& builder, Var value, const Layout& layout);

}  // namespace tenon::relay

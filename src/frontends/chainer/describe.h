#pragma once

#include "base/page.h"
#include "frontends/chainer/tables.h"

namespace tenon::chainer {

/// The network function by function with its shapes, what backward needs of it, and the memory that
/// a training step takes.
Page describe_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::chainer

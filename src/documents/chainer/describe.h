#pragma once

#include "base/page.h"
#include "documents/chainer/tables.h"

namespace tenon::documents::chainer {

/// Describes the network function by function: shapes, variables retained for backward, and the
/// memory of a training step.
Page describe_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::documents::chainer

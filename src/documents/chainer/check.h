#pragma once

#include "documents/chainer/tables.h"
#include "documents/findings.h"

namespace tenon::documents::chainer {

/// Recomputes the claims of a file: sizes from shapes and attributes, ids, ranks, retained
/// variables, and the correspondence of backward and forward records.
Findings check_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::documents::chainer

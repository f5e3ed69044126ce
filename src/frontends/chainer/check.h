#pragma once

#include "frontends/chainer/tables.h"
#include "frontends/findings.h"

namespace tenon::chainer {

/// Computes again what the file claims: every size from shapes and attributes, ids, ranks, what
/// each function retains, and that each backward record belongs to its forward one and lists what
/// it should.
Findings check_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::chainer

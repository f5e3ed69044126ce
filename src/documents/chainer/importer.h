#pragma once

#include "documents/chainer/tables.h"
#include "ir/graph.h"

namespace tenon::documents::chainer {

/// Imports the forward network in order of rank, with shapes derived from the byte sizes.
/// Parameters are seeded by path; dropout is an identity. Throws Error for contradictory sizes, and
/// one Error of kind Unsupported that counts the functions without a rule.
Graph import_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::documents::chainer

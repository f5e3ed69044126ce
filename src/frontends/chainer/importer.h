#pragma once

#include "frontends/chainer/tables.h"
#include "ir/graph.h"

namespace tenon::chainer {

/// The forward network, in order of rank, with the shapes that the bytes tell. Parameters are
/// seeded by their paths; dropout does nothing. Throws Error where a tensor's size contradicts the
/// others, and one Error of kind Unsupported that counts the functions nobody wrote a rule for.
Graph import_tables(const Tables& tables, std::string_view source);

}  // namespace tenon::chainer

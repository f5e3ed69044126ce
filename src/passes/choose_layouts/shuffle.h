#pragma once

#include "passes/choose_layouts/forms.h"

namespace tenon::layouts {

/// A permutation of channels as exporters write it: a reshape takes the channels apart, a transpose
/// orders the parts anew, a reshape puts them together. None of the three is an image to the next,
/// but all of it is the same in both forms, so that it moves as a whole.
struct Shuffle {
  NodeId split, transpose, join;
  /// of the moved nodes
  Attributes split_attrs, transpose_attrs, join_attrs;
};

/// The one that the node is part of.
std::optional<Shuffle> find_shuffle(const Graph& graph, NodeId node);

}  // namespace tenon::layouts

#pragma once

#include "passes/choose_layouts/forms.h"

namespace tenon::passes::layouts {

/// Channel shuffle, a permutation of channels as exporters write it: a reshape splits the channels,
/// a transpose permutes the parts, a reshape merges them. The intermediate values are not images,
/// but the whole is independent of the layout and therefore moves as a unit.
struct Shuffle {
  NodeId split, transpose, join;
  /// of the moved nodes
  Attributes split_attrs, transpose_attrs, join_attrs;
};

/// Returns the channel shuffle that the node belongs to.
std::optional<Shuffle> find_shuffle(const Graph& graph, NodeId node);

}  // namespace tenon::passes::layouts

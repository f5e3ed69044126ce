#pragma once

#include "tenon/builder.h"
#include "testing/random.h"
#include "testing/verify/trial_inputs.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::testing {

/// A graph under construction: its values with their elements in one sample run, and sources of
/// operands.
class GraphMaker {
 public:
  /// `max_elements`: larger values are not used as operands.
  GraphMaker(std::uint64_t seed, std::int64_t max_elements);

  Random random;
  Graph& graph() { return graph_; }
  Builder& build() { return build_; }

  /// Evaluates the nodes added since the last call in the sample run. A node that fails or is too
  /// large is unusable, together with its readers.
  void run_new_nodes();
  bool is_usable(ValueId value) const { return sample_[value].has_value(); }
  const std::vector<ValueId>& usable() const { return usable_; }
  std::size_t usable_node_count() const { return usable_node_count_; }
  const Datum& sample(ValueId value) const { return *sample_[value]; }
  /// null if it is not a tensor, or unknown
  const TensorType* tensor_type(ValueId value) const;

  /// Returns a random element type, weighted by use in networks; `any_float` only floats.
  DType any_dtype();
  DType any_float();
  /// Returns a small extent, rarely 0; occasionally a symbol, if the graph has symbols.
  Dim any_extent();
  Dims any_dims(std::size_t max_rank);

  /// Returns an existing value of that element type and those extents, or a new one.
  ValueId value_of(DType dtype, const Dims& dims);
  ValueId new_value(DType dtype, const Dims& dims, TrialKind kind = TrialKind::Ordinary);
  ValueId new_input(const TensorType& type);
  ValueId constant_of(DType dtype, const Dims& dims, TrialKind kind = TrialKind::Ordinary);
  /// Returns any usable tensor, or a new one.
  ValueId any_tensor();
  /// Returns a usable tensor that the test accepts; prefers later ones.
  template <class Test>
  std::optional<ValueId> find(Test accepts) {
    std::vector<ValueId> found;
    for (ValueId value : usable_) {
      const TensorType* type = tensor_type(value);
      if (type && accepts(*type)) found.push_back(value);
    }
    if (found.empty()) return std::nullopt;
    const std::size_t half = found.size() / 2;
    return random.chance(60) ? found[half + random.below(found.size() - half)] : random.pick(found);
  }

  /// Returns the graph without dead nodes and unread inputs; its outputs are the values without
  /// readers, and occasionally others.
  Graph finish();

 private:
  Graph graph_;
  Builder build_;
  IdMap<ValueId, std::optional<Datum>> sample_;
  std::vector<ValueId> usable_;
  std::size_t next_node_ = 0, usable_node_count_ = 0;
  std::int64_t max_elements_;
  DimBindings symbols_;
  std::vector<Dim> symbol_dims_;
};

/// Appends a pattern that passes match; see motifs.cpp. May throw Error if it does not fit.
void add_motif(GraphMaker& maker);
/// Appends a convolution, pooling or matrix product; see contractions.cpp. May throw likewise.
void add_contraction(GraphMaker& maker);
/// Appends a convolution of many channels, possibly with an epilogue.
void add_wide_convolution(GraphMaker& maker);
/// Appends a node of a random operator; see random_node.cpp. May throw Error if it does not fit.
void add_random_node(GraphMaker& maker);

}  // namespace tenon::testing

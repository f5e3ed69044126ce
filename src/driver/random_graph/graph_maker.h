#pragma once

#include "driver/random.h"
#include "driver/verify/trial_inputs.h"
#include "tenon/builder.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A graph under way: values with what they hold in one sample run, and ways to come by operands.
class GraphMaker {
 public:
  /// `max_elements`: values with more are not used any further.
  GraphMaker(std::uint64_t seed, std::int64_t max_elements);

  Random random;
  Graph& graph() { return graph_; }
  Builder& build() { return build_; }

  /// Runs the nodes added since the last call in the sample run. One that fails or is too large
  /// stays unusable, and so does all that reads it.
  void run_new_nodes();
  bool is_usable(ValueId value) const { return sample_[value].has_value(); }
  const std::vector<ValueId>& usable() const { return usable_; }
  std::size_t usable_node_count() const { return usable_node_count_; }
  const Datum& sample(ValueId value) const { return *sample_[value]; }
  /// null where it is none, or not known
  const TensorType* tensor_type(ValueId value) const;

  /// A dtype that graphs often or sometimes have; floats only if asked for.
  DType any_dtype();
  DType any_float();
  /// A small extent, rarely 0; a symbol now and then, where the graph has symbols.
  Dim any_extent();
  Dims any_dims(std::size_t max_rank);

  /// An existing value of that dtype and those extents, or a new one.
  ValueId value_of(DType dtype, const Dims& dims);
  ValueId new_value(DType dtype, const Dims& dims, TrialKind kind = TrialKind::Ordinary);
  ValueId new_input(const TensorType& type);
  ValueId constant_of(DType dtype, const Dims& dims, TrialKind kind = TrialKind::Ordinary);
  /// Any usable tensor, or a new one.
  ValueId any_tensor();
  /// A usable tensor that the test accepts, if there is one; later ones are likelier.
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

  /// What is left when dead nodes and unread inputs are gone; the outputs are values nobody reads,
  /// and now and then others.
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

/// Appends what passes look for; see motifs.cpp. May throw Error where it does not fit.
void add_motif(GraphMaker& maker);
/// Appends a convolution, pooling or product of matrices; see contractions.cpp. May throw likewise.
void add_contraction(GraphMaker& maker);
/// Appends a convolution of many channels, with what may follow it.
void add_wide_convolution(GraphMaker& maker);
/// Appends a node of some operator; see random_node.cpp. May throw Error where it does not fit.
void add_random_node(GraphMaker& maker);

}  // namespace tenon

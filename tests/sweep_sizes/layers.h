#pragma once

#include "tenon/builder.h"
#include "testing/random.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon::testing {

/// A chain of random layers of usual sizes under construction: batches of 1 to 300, extents of 1 to
/// 40, 1 to 70 channels.
class Chain {
 public:
  /// `is_fixed`: no symbolic extents.
  Chain(testing::Random& random, bool is_fixed);

  testing::Random& random() { return random_; }
  Builder& builder() { return build_; }

  std::int64_t batch();
  std::int64_t channels();
  std::int64_t pixels();
  /// Returns a number or, in some graphs, the symbol.
  std::string extent(const std::string& symbol, std::int64_t number);
  const std::string& element_type() const { return element_type_; }
  /// Uses f32 from here on.
  void use_f32() { element_type_ = "f32"; }

  Var input(const std::string& extents);
  /// A constant; rarely an input.
  Var weight(const Attr::Integers& extents);
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) {
    return build_.call(op, operands, attrs);
  }
  Attr::Integers shape(Var x) const { return build_.shape(x); }
  /// Returns an activation function or a short chain of elementwise operations.
  Var activation(Var x);
  /// Returns an earlier value of the same type; x itself if there is none.
  Var earlier_like(Var x);

  /// Applies `layer` `count` times, each to the last result; layers that do not fit the sizes are
  /// left out.
  void repeat(std::int64_t count, const std::function<Var(Var x)>& layer);
  /// The graph with the last value, and occasionally another, as its output.
  Graph finish();

 private:
  testing::Random& random_;
  Builder build_;
  unsigned symbol_share_;
  std::string element_type_;
  std::vector<Var> values_;
  std::uint64_t weight_count_ = 0;
  int input_count_ = 0;
};

/// Family of graphs: a name and a generator. Generators may throw Error for sizes that do not fit.
struct Family {
  std::string name;
  std::function<Graph(testing::Random& random, bool is_fixed)> make;
};
/// Returns images, images in bytes, sequences, products, reductions, recurrent layers.
const std::vector<Family>& layer_families();

/// Appends a random layer to an image [N, C, ...], see images.cpp.
Var image_layer(Chain& chain, Var x);
/// Appends a layer to a sequence [B, S, D], see sequences.cpp.
Var sequence_layer(Chain& chain, Var x);

}  // namespace tenon::testing

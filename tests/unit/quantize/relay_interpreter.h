#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// Independent interpreter of Relay's int8 quantization: evaluates a float network value by value
/// from the specified rules, without graph rewrites and without code of the pipeline. Supports the
/// operators of convolutional networks in NHWC.
class RelayInterpreter {
 public:
  struct Options {
    float global_scale = 8;
    /// convolutions, in visiting order
    std::vector<std::int64_t> skipped = {0};
    bool has_legacy_add = false;
    /// else the next power of two
    bool takes_largest_weight = false;
    /// products in Q31 round to nearest; else halves round up
    bool rounds_to_nearest = false;
  };
  RelayInterpreter(const Graph& graph, Options options)
      : graph_(graph), options_(std::move(options)) {}

  /// Returns the network's only output.
  std::vector<float> run(const std::vector<float>& input);
  /// Integers of a quantized value; empty for others.
  const std::vector<std::int64_t>& steps(const std::string& value) const;

  /// Multiplies by a factor in fixed-point arithmetic.
  static std::int64_t multiplied(std::int64_t x, double factor, bool rounds_to_nearest);

 private:
  enum class Kind { None, Input, Activation };
  enum class Stored { Real, RealSteps, Byte, Sum };
  struct Held {
    Shape shape;
    std::vector<float> reals;
    std::vector<std::int64_t> steps;
    float scale = 1;
    Stored stored = Stored::Real;
    Kind kind = Kind::None;
    bool is_open = false;  // inside an 8-bit section
  };

  const Held& value(ValueId id);
  Held computed(const Node& node);
  Held operand(const Node& node, std::size_t position);
  std::size_t references(ValueId id) const;

  Held convolved(const Node& node);
  Held added(const Node& node);
  Held averaged(const Node& node) const;
  Held pooled(const Node& node);
  Held constant(ValueId id) const;
  Held quantized(Held x, float scale) const;
  Held quantized_weight(Held x) const;
  Held as_input(Held x) const;
  Held closed(Held x) const;
  Held as_bytes(Held x) const;
  Held as_reals(Held x) const;
  void to_scale(Held& x, float scale) const;

  const Graph& graph_;
  Options options_;
  std::map<ValueId, Held> values_;
  std::int64_t convolutions_ = 0;
};

}  // namespace tenon

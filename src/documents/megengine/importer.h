#pragma once

#include "documents/megengine/import.h"
#include "documents/megengine/vocabulary.h"
#include "tenon/builder.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::documents::megengine {

/// Walks the operators of a profile and builds a graph.
class MegEngineImporter {
 public:
  struct Settings {
    /// Imports the operators that compute target shapes, in place of the stated shapes.
    bool computes_shapes = false;
  };
  MegEngineImporter(const MegEngineProfile& profile, const Index& index, Settings settings)
      : profile_(profile),
        index_(index),
        settings_(settings),
        value_(profile.graph_exec.vars.size()) {}

  Inference run();

 private:
  using Handler = void (MegEngineImporter::*)();
  static const std::unordered_map<std::string_view, Handler>& handlers();

  // Accessors for the handlers to the current operator.
  const Operator& opr() const { return profile_.graph_exec.operators[opr_]; }
  Param param() const {
    return Param(index_.footprint[opr_] ? &index_.footprint[opr_]->param : nullptr);
  }
  std::size_t input_count() const { return index_.inputs[opr_].size(); }
  const VarNode& input_var(std::size_t k) const;
  Var input(std::size_t k);
  std::vector<Var> inputs();
  Extents extents(Var value) const;
  /// Returns the known elements of an input that the host reads.
  std::optional<Extents> host_values(std::size_t k);
  /// Returns the document's shape of output `k`.
  Extents stated_output(std::size_t k) const;
  std::optional<DType> stated_dtype(std::size_t var, const Extents& shape) const;
  /// Returns the document's type of a var without producer.
  TensorType stated_type(std::size_t var, DType dtype, const Extents& shape) const;
  void define(std::size_t k, Var value);
  /// Defines an output as an alias of an input.
  void forward(std::size_t k, Var value);
  /// Defines the first output, which may alias the operand.
  void define_from(Var x, Var value);
  void require_param(std::string_view name) const;
  void refuse_unknown_params() const;
  [[noreturn]] void unsupported(std::string what) const;

  void import_operator();
  void define_from_document();
  void trust_document();
  void set_outputs();
  std::string value_name(std::string_view suffix = "") const;

  // Sources and sinks.
  void constant();
  void graph_input();
  void output_callback();
  void pass_on();
  void update();
  Constant seeded_value(std::size_t var, DType dtype, const Extents& shape) const;
  void sow(std::size_t k);

  // Arithmetic.
  void elemwise();
  /// Converts a vector of one element, MegEngine's scalar, to a scalar.
  Var as_scalar(Var value);
  void power();
  void reduce();
  void softmax();
  void convert();

  // Contractions and windows.
  void convolution();
  void convolution_bias();
  void convolution_backward_data();
  void convolution_backward_filter();
  void pooling();
  void matrix_mul();
  void batch_norm();
  std::vector<Attr> window_attributes() const;
  /// Returns a parameter that is a step, pad or extent.
  std::int64_t window_number(std::string_view name, std::int64_t otherwise) const;
  Var filter(std::size_t k, std::int64_t& groups);
  Var in_shape(Var value, const Extents& shape);
  Var to_channels_first(Var image) const;
  Var from_channels_first(Var image) const;
  bool is_channels_last() const;

  // Shapes.
  void reshape();
  void broadcast();
  void concat_all();
  void dimshuffle();
  void axis_add_remove();
  void subtensor();
  void get_var_shape();
  Extents target();

  void tenon_operator();

  const MegEngineProfile& profile_;
  const Index& index_;
  Settings settings_;
  Builder builder_;
  std::vector<ValueId> value_;
  std::size_t opr_ = 0;
  std::vector<Inference::Problem> problems_;
  std::vector<Inference::Disagreement> disagreements_;
  struct Output {
    ItemId opr;
    ValueId value;
    /// user-given, or empty
    std::string name;
  };
  std::vector<Output> outputs_;
};

}  // namespace tenon::documents::megengine

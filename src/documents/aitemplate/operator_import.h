#pragma once

#include "documents/aitemplate/dim_table.h"
#include "documents/aitemplate/tables.h"
#include "documents/aitemplate/vocabulary.h"
#include "tenon/builder.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::aitemplate {

/// Aborts the import of one operator; the import continues, so that all unsupported operators are
/// reported at once.
struct UnsupportedOperator {
  std::string reason;
};

/// Appends the nodes of one operator to a graph.
class OperatorImport {
 public:
  /// A value, and whether its own layout applies (a dump only knows channels last).
  struct Operand {
    Var value;
    bool keeps_layout = false;
  };

  /// `outputs` are the shapes of the outputs in the operator's view.
  OperatorImport(const OperatorRow& row, const DimTable& dims, Builder& build,
                 std::vector<Operand> operands, std::vector<std::vector<DimRow>> outputs);

  /// Returns one value per output. Throws UnsupportedOperator, or Error if operands do not fit.
  std::vector<Var> run();

  /// Returns whether the operator has an importer.
  static bool knows(const OperatorRow& row);

 private:
  using Handler = std::vector<Var> (OperatorImport::*)();
  struct Entry {
    std::string_view name;
    Handler handler;
  };
  static const std::vector<Entry>& handlers();
  static const Entry* find_handler(std::string_view op);

  /// Refuses attributes that no operator of AITemplate has; their objects have no schema each.
  static void refuse_unknown_attributes(const OperatorRow& row);

  // An operator with its epilogue.
  Var composite_value(const Composite& composite);
  Var convolution(const Composite& composite, std::size_t& used);
  Var product(const Composite& composite);
  Var step(EpilogueStep step, Var value, std::size_t& used);
  std::vector<Var> composite();

  // Groups.
  std::vector<Var> group();
  std::vector<Var> elementwise();
  Var apply(const OperatorRow& inner, const std::vector<Var>& args);
  template <class Fill>
  std::vector<Var> fused(const Fill& fill);

  // One operator each.
  std::vector<Var> tenon_op();
  std::vector<Var> pool();
  std::vector<Var> reshape();
  std::vector<Var> squeeze();
  std::vector<Var> unsqueeze();
  std::vector<Var> permute();
  std::vector<Var> concatenate();
  std::vector<Var> split();
  std::vector<Var> slice();
  std::vector<Var> softmax();
  std::vector<Var> layer_norm();
  std::vector<Var> group_norm();
  std::vector<Var> reduce();
  std::vector<Var> identity();
  std::vector<Var> pad_channels();
  std::vector<Var> full();
  std::vector<Var> variance();
  std::vector<Var> batch_gather();
  std::vector<Var> flash_attention();

  Var operand(std::size_t index) const;
  std::size_t rank(Var value) const { return build_.rank(value); }
  Var channels_first(const Operand& operand, std::string_view layout, bool& was_moved);
  Var channels_last(Var value, bool was_moved);
  Var splat(double number, const Dims& dims, DType dtype);

  const PythonValue& attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name, double otherwise) const;
  bool flag(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  /// Returns one number per axis, from one number or a tuple.
  std::vector<std::int64_t> per_axis(std::string_view name, std::size_t count,
                                     std::int64_t otherwise) const;
  std::int64_t axis(std::string_view name) const;

  const OperatorRow& row_;
  const DimTable& dims_;
  Builder& build_;
  std::vector<Operand> operands_;
  std::vector<std::vector<DimRow>> outputs_;
};

}  // namespace tenon::documents::aitemplate

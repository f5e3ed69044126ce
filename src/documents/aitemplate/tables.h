#pragma once

#include "documents/aitemplate/python_value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Contents of a dump in AITemplate's terms. Attributes that a version of AITemplate does not print
// are listed in `absent`; attributes without a field are in `further`.
namespace tenon::documents::aitemplate {

/// An extent: one value, or the least, profiled and greatest values.
struct DimRow {
  std::int64_t depth = 0;
  std::optional<std::string> name;
  bool is_nop = false;
  /// A number or a formula.
  std::variant<std::int64_t, std::string> symbolic_value;
  std::vector<std::int64_t> values;
  std::vector<std::string> absent;
  /// Additional members of a JaggedIntVar.
  std::vector<Member> further;

  bool is_static() const { return values.size() == 1; }
  std::int64_t least() const { return values.front(); }
  std::int64_t greatest() const { return values.back(); }
};

struct TensorRow {
  std::optional<std::string> name, original_name;
  std::string dtype;
  std::vector<DimRow> shape;
  std::int64_t depth = 0;
  std::vector<std::string> src_ops, dst_ops;
  bool is_nop = false;
  bool is_input = false, is_output = false, is_param = false, is_internal_constant = false;
  bool has_output_aliases = false;
  bool check_nan_and_inf = false, check_outputs = false, skip_constant_folding = false;
  /// None or one.
  std::vector<TensorRow> is_view_of, external_tensor;
  /// For a number.
  PythonValue value;
  /// Python's text of bound bytes.
  std::optional<std::string> data;
  std::optional<std::int64_t> offset, constant_folding_output_idx;
  std::vector<std::string> absent;
  std::vector<Member> further;
};

/// Addressing of a tensor inside a larger one.
struct AccessorRow {
  using Group = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;
  std::optional<std::vector<Group>> dim_mapping;
  std::vector<DimRow> original_shapes;
  std::optional<std::vector<DimRow>> actual_shapes;
  std::int64_t offset = 0;
  std::optional<std::int64_t> stride_dim;
  /// Element counts from stride_dim on.
  std::optional<std::int64_t> original_total_elements, actual_total_elements;
  bool is_contiguous = true, is_from_strided_tensor = false;
  std::string tensor_dtype;
  std::vector<std::string> absent;
  std::vector<Member> further;
};

/// A condition on the run-time extents and the kernel for it; '' before profiling.
struct ExecEntry {
  std::string condition;
  PythonValue choice;
};
struct ExecPath {
  bool is_ordered = true;
  std::vector<ExecEntry> entries;
};

/// An enumerator: <FuncEnum.ADD: 1>.
struct FuncRow {
  std::string name;
  std::int64_t number = 0;
};

struct OperatorRow {
  std::string op;
  std::optional<std::string> name, original_name;
  std::int64_t depth = 0;
  bool is_nop = false;
  std::optional<bool> has_profiler;
  std::vector<std::string> inputs, outputs;
  /// None represents a number, whose value the dump does not record.
  std::optional<std::vector<std::optional<std::string>>> args;
  std::optional<std::vector<std::optional<std::string>>> original_inputs;
  std::optional<std::vector<TensorRow>> original_outputs;
  std::optional<std::vector<AccessorRow>> input_accessors, output_accessors;
  std::optional<FuncRow> func;
  std::vector<OperatorRow> elementwise_ops;
  std::optional<ExecPath> exec_path;
  /// Kind-specific attributes: stride, pad, ….
  std::vector<Member> further;

  const PythonValue* find(std::string_view attribute) const;
};

struct Dump {
  std::vector<TensorRow> tensors;
  std::vector<OperatorRow> operators;
  PythonStyle style;
};

/// Returns the kernel of an entry; nullopt for other contents.
std::optional<std::string> algorithm_of(const ExecEntry& entry);

/// Sorts operators topologically and otherwise as listed. Omits operators in a cycle and those that
/// depend on one.
std::vector<std::uint32_t> operators_in_order(const Dump& dump);

/// Prints the whole dump like AITemplate.
std::string print_dump(const Dump& dump);

PythonValue to_python(const TensorRow& row);
PythonValue to_python(const OperatorRow& row);
PythonValue to_python(const DimRow& row);
PythonValue to_python(const AccessorRow& row);

}  // namespace tenon::documents::aitemplate

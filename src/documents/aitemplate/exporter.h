#pragma once

#include "documents/aitemplate/kernel_choices.h"
#include "documents/aitemplate/sorted_graph.h"
#include "documents/aitemplate/tables.h"
#include "documents/aitemplate/vocabulary.h"
#include "documents/native_node.h"
#include "frontends/node_attrs.h"
#include "ir/graph.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::documents::aitemplate {

/// Prints a node's attributes as in a graph's text: "" or "{name = value}".
std::string attributes_text(const Node& node);
/// Prints one attribute; words are unquoted.
std::string attribute_text(const OpDef& op, std::string_view name, const AttrValue& value);

/// Converts a graph to the tables of AITemplate's dump: first the operators that a user would have
/// called, numbered in AITemplate's order, then fused groups in their positions.
class DumpExporter {
 public:
  DumpExporter(const Graph& graph, const NativeNodes& own) : graph_(graph), native_(own) {}
  Dump run();

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr int kMostViews = 8;  // chained; a dump prints the whole chain for each

  struct Extent {  // a dim that tensors share
    DimRow row;
  };
  struct Tensor {
    std::string name, original_name;  // "" until named, or if both are equal
    DType dtype = DType::F32;
    std::vector<std::size_t> extents;
    std::int64_t depth = 0;
    ValueId value;  // invalid for tensors that only the dump has
    const Constant* constant = nullptr;
    bool is_input = false, is_output = false;
    std::size_t view_of = kNone;
    int view_depth = 0;
  };
  struct Operation {
    OperatorRow row;  // kind and own attributes; the other fields are set at the end
    std::vector<std::size_t> inputs, outputs;
    std::vector<std::size_t> args;  // for elementwise operations; kNone for a number
    std::size_t input_accessors = 0, output_accessors = 0;
    bool keeps_original_inputs = false, keeps_original_outputs = false;
    std::vector<std::size_t> members;  // of a group: the fused operations
    bool is_member = false;
  };
  // Origin of each result extent: an axis of an operand, or none.
  using Origins = std::vector<std::optional<std::pair<std::size_t, std::size_t>>>;

  // ---- tensors ----
  void read_dim_notes();
  void add_sources();
  template <class ExtentsOf>
  std::size_t add_tensor(ValueId id, const ExtentsOf& extents_of);
  std::size_t add_value(ValueId id);
  std::size_t tensor_of(ValueId id) { return tensor_of_.at(id); }
  std::size_t new_extent(const Dim& dim);
  std::vector<std::size_t> source_extents(const std::string& name, const Dims& dims);
  std::vector<std::size_t> result_extents(const Dims& dims,
                                          const std::vector<std::size_t>& operands,
                                          const Origins& origins);
  std::string unique_name(const std::string& wanted);
  const DimRow& extent(std::size_t tensor, std::size_t axis) const {
    return extents_[tensors_[tensor].extents[axis]].row;
  }
  std::vector<DimRow> shape_of(std::size_t tensor) const;

  // ---- operators: each returns false if AITemplate has no equivalent ----
  void add_node(NodeId id);
  bool try_elementwise(const Node& node);
  bool try_convolution(const Node& node);
  bool try_pool(const Node& node);
  bool try_gemm(const Node& node);
  bool try_group(const Node& node);
  bool try_composite(const Node& node);
  bool try_view(const Node& node);
  bool try_permute(const Node& node);
  bool try_concat(const Node& node);
  bool try_split(const Node& node);
  bool try_slice(const Node& node);
  bool try_normalization(const Node& node);
  bool try_reduction(const Node& node);
  void add_tenon_op(NodeId id);

  struct ConvolutionParts {
    const Node* node = nullptr;
    const Graph* graph = nullptr;
    std::string base;
    frontends::WindowNumbers window;
    std::int64_t groups = 1;
    std::string x_layout, w_layout;
  };
  std::optional<ConvolutionParts> convolution_parts(const Graph& graph, const Node& node) const;
  void add_convolution(const ConvolutionParts& parts, std::size_t x, std::size_t w,
                       const std::vector<std::size_t>& further,
                       const std::vector<EpilogueStep>& steps, ValueId result);
  std::optional<std::string> gemm_base(const Graph& graph, const Node& node) const;
  GemmExtents gemm_extents(const Composite& composite,
                           const std::vector<std::size_t>& operands) const;
  void add_gemm(const std::string& op, const std::vector<std::size_t>& operands,
                const std::vector<EpilogueStep>& steps, ValueId result);
  std::size_t add_elementwise(const FuncInfo& func, std::vector<std::size_t> operands,
                              ValueId result, const Dims& dims, DType dtype);
  void add_image(Operation operation, const std::string& layout, ValueId result);
  std::size_t change_layout(std::size_t tensor, const std::string& from, const std::string& to);
  Operation permutation(std::size_t tensor, const std::vector<std::int64_t>& perm);

  /// Adds an operation with these results.
  std::size_t add(Operation operation, const std::vector<ValueId>& results,
                  const std::vector<Origins>& origins);
  std::size_t add_made(Operation operation);

  // ---- the dump ----
  std::int64_t depth_of(const Operation& operation) const;
  SortGraph sort_graph(bool with_members) const;
  void name_operations();
  void make_rows();
  void mark_views(const std::vector<std::size_t>& order);
  AccessorRow accessor_of(std::size_t tensor) const;
  OperatorRow operator_row(const Operation& operation) const;
  std::vector<std::string> names_of(const std::vector<std::size_t>& tensors) const;
  void add_layout_notes();
  void add_positions();

  const Graph& graph_;
  const NativeNodes& native_;
  std::vector<Extent> extents_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
  std::unordered_map<ValueId, std::size_t> tensor_of_;
  std::unordered_set<std::string> taken_names_;
  std::map<std::string, std::size_t> symbolic_extents_;               // by formula
  std::map<std::pair<std::string, std::size_t>, std::size_t> noted_;  // by tensor and axis
  std::map<std::pair<std::size_t, std::string>, std::size_t> changed_;
  std::vector<std::size_t> order_;                  // of tensors in the dump
  std::vector<TensorRow> rows_;                     // by tensor
  std::map<std::string, std::size_t> not_written_;  // reason -> count
  Dump dump_;
};

}  // namespace tenon::documents::aitemplate

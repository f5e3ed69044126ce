#pragma once

#include "frontends/torch/archive.h"
#include "frontends/torch/import_node.h"
#include "frontends/unsupported.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::frontends::torch {

/// Builds a graph from an exported program. In-place operators become new values: a slot holds the
/// current value of a name, and views are computed again after their base was written.
class TorchImporter {
 public:
  TorchImporter(Archive& archive, std::vector<std::string>* warnings);
  Graph run();

 private:
  friend class NodeImport;

  struct Slot {
    Var value;
    /// Set on a view: the name of the tensor that it shares memory with, and the node that made it.
    std::string base;
    std::optional<JsonReader> view_node;
    /// Counts writes; `base_version`: that of the base when the view was computed.
    std::uint64_t version = 0, base_version = 0;
    /// A buffer or an input, for messages: writes to it would outlive the run.
    std::string outer;
  };
  /// Names of one graph: the program's, or that of a higher-order operator.
  struct Scope {
    JsonReader graph;
    std::unordered_map<std::string, Slot> slots = {};
    std::unordered_map<std::string, TensorType> types = {};
    std::unordered_map<std::string, bool> complex = {};
    std::unordered_map<std::string, Dim> numbers = {};
    /// Values of nodes that were refused; nodes that read them are skipped.
    std::unordered_map<std::string, bool> doubtful = {};
  };

  /// Each throws Error for a name that the program does not define.
  const TensorType& type_named(const std::string& name) const;
  Slot& slot_named(const std::string& name);

  void read_ranges();
  void read_types(Scope& scope);
  TensorType type_of(const JsonReader& meta) const;
  Dim dim_of(const JsonReader& argument) const;
  void add_inputs();
  void add_outputs();

  void import_nodes();
  void import_node(const JsonReader& node);
  void run_handler(const JsonReader& node, std::string_view target);
  void call_subgraph(const JsonReader& node);
  bool is_about_numbers(const JsonReader& node) const;
  bool reads_doubtful(const JsonReader& node) const;
  void refuse(const JsonReader& node, std::string_view target, const std::string& reason);

  Var read(const std::string& name);
  void define(const std::string& name, Var value);
  void write(const std::string& name, Var value, const NodeImport& writer);
  Var written_base(const Slot& view, Var base, Var value, const NodeImport& writer);
  void note_view(const JsonReader& node, std::string_view op);

  Archive& archive_;
  std::vector<std::string>* warnings_;
  Builder builder_;
  SymbolRanges ranges_;
  Scope* scope_ = nullptr;
  UnsupportedList unsupported_;
};

}  // namespace tenon::frontends::torch

#pragma once

#include "base/error.h"
#include "frontends/onnx/external_data.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/model_file.h"
#include "frontends/onnx/type_proto.h"
#include "frontends/unsupported.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace onnx_schema {
class AttributeProto;
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx_schema

namespace tenon::frontends::onnx {

/// by domain; "" is ai.onnx
using OpsetVersions = std::map<std::string, int, std::less<>>;

inline std::string plain_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

struct Scope;

/// An attribute and the scope of its graphs.
struct BoundAttr {
  const onnx_schema::AttributeProto* attr = nullptr;
  Scope* scope = nullptr;
};

/// Name bindings of one ONNX graph or function during import.
struct Scope {
  Builder* builder = nullptr;
  /// of a body: the scope of the node that owns it
  Scope* outer = nullptr;
  const OpsetVersions* opsets = nullptr;
  /// Omitted inputs of a function are invalid Vars.
  std::unordered_map<std::string, Var> values{};
  /// Names of placeholders, and of values that depend on them: errors of their readers may be
  /// consequences.
  std::unordered_set<std::string> doubtful{};
  std::unordered_map<std::string, const onnx_schema::TypeProto*> declared_types{};
  /// Attributes of the function call; null outside functions.
  const std::unordered_map<std::string, BoundAttr>* arguments = nullptr;
  /// captured inputs of a body and their outer values
  std::unordered_map<ValueId, Var> captured{};
  /// of values inside functions
  std::string name_prefix{};
  /// position of the scope's nodes in messages
  std::string place{};
  /// the node in progress
  const onnx_schema::NodeProto* node = nullptr;
  // Since its import began:
  std::unordered_set<ValueId> named{};
  bool has_renamed_data = false;
};

/// Converts one model to a graph; the scopes of bodies and functions form a stack.
class OnnxImporter {
 public:
  /// `source` is the model's name in messages. `warnings` receives deviations from the standard
  /// that do not affect the result; null drops them.
  OnnxImporter(ModelFile file, std::string source, ExternalFiles files,
               std::vector<std::string>* warnings = nullptr);
  Graph run();

  // Interface for NodeImport.
  Scope& scope() { return *scope_; }
  /// Resolves an attribute: itself, the caller's argument that it refers to, or null.
  BoundAttr resolve(const onnx_schema::AttributeProto& attr);
  NodeImport::Bodies import_bodies(const std::vector<BoundAttr>& graphs,
                                   const std::vector<std::vector<Type>>& input_types);
  /// Appends a graph's nodes to the current graph; returns its outputs.
  std::vector<Var> inline_body(const BoundAttr& attr, const std::vector<Var>& inputs);
  /// Returns the constant of a value, also through the inputs of a body; null for other values.
  const Constant* constant_of(const Scope& scope, Var value) const;
  Tensor read(const onnx_schema::AttributeProto& attr);
  Type read_type(const onnx_schema::TypeProto& proto) { return types_.read(proto, "type"); }
  /// Returns a free name for the value of an ONNX name.
  std::string result_name(const std::string& name) const;
  /// Declares an output of the current node; `may_rename` for a value that the node created.
  void define(const std::string& name, Var value, bool may_rename);

 private:
  using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  struct Function {
    const onnx_schema::FunctionProto* proto = nullptr;
    OpsetVersions opsets;
    bool is_active = false;
  };

  void sort();
  void warn(std::string text);
  void read_opsets();
  void read_functions();
  void read_metadata(Graph& graph) const;
  void declare_types(const onnx_schema::GraphProto& graph);
  void import_inputs(const onnx_schema::GraphProto& graph, const std::vector<Type>& given);
  void import_main_constants(onnx_schema::GraphProto& graph);
  void import_body_constants(const onnx_schema::GraphProto& graph);
  void import_sparse_constants(const onnx_schema::GraphProto& graph);
  void add_constant(const std::string& name, const Constant& value);
  void import_node(const onnx_schema::NodeProto& node);
  void build_node(const onnx_schema::NodeProto& node);
  void run_handler(const onnx_schema::NodeProto& node);
  void call_function(Function& function, const onnx_schema::NodeProto& node);
  void import_outputs(const onnx_schema::GraphProto& graph);
  void check_declared_type(const onnx_schema::ValueInfoProto& output, const Type& made);
  Graph import_body(const BoundAttr& attr, const std::vector<Type>& input_types,
                    const std::vector<Var>& captured);

  void add_value(const std::string& name, Var value);
  /// Returns the first input that is not known to be a tensor; "" if all are.
  std::string input_without_type(const onnx_schema::NodeProto& node);
  /// Adds a placeholder of the declared type, so that the nodes after an error are checked, too.
  void add_placeholder(const std::string& name);
  void define_placeholder_outputs(const onnx_schema::NodeProto& node);
  /// Records an attribute outside `known`, which does not depend on operands, and throws Abandoned.
  void require_attributes(const onnx_schema::NodeProto& node, std::string_view known);
  bool reads_doubtful(const onnx_schema::NodeProto& node) const;
  bool has_problems() const { return !errors_.empty() || !unsupported_.is_empty(); }
  /// Lists an unsupported node, unless the reason may be a consequence of another problem.
  void refuse(const onnx_schema::NodeProto& node, const std::string& reason);
  /// Records an error; the import continues.
  void record(Error error);
  /// Throws the first error with all further ones.
  void raise_problems();
  /// Runs `read`, which adds a value; after an Error, a placeholder.
  template <class Read>
  void read_value(std::string_view kind, const std::string& name, const Read& read);
  void refine_types(const onnx_schema::NodeProto& node);
  void reinfer_renamed(std::size_t first_node);
  std::string node_place(const onnx_schema::NodeProto& node) const;
  Graph& graph() { return scope_->builder->graph(); }

  /// Counts a level of nesting for the guard's lifetime.
  class DepthGuard {
   public:
    explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
    DepthGuard(const DepthGuard&) = delete;
    ~DepthGuard() { --depth_; }

   private:
    int& depth_;
  };

  /// Makes a scope the current one for the guard's lifetime.
  class ScopeGuard {
   public:
    ScopeGuard(OnnxImporter& importer, Scope& scope)
        : importer_(importer), before_(importer.scope_) {
      importer.scope_ = &scope;
    }
    ScopeGuard(const ScopeGuard&) = delete;
    ~ScopeGuard() { importer_.scope_ = before_; }

   private:
    OnnxImporter& importer_;
    Scope* before_;
  };

  ModelFile file_;
  std::shared_ptr<onnx_schema::ModelProto> model_;
  std::string source_;
  ExternalFiles files_;
  TypeReader types_;
  OpsetVersions opsets_;
  std::map<FunctionKey, Function> functions_;
  UnsupportedList unsupported_;
  std::vector<std::string>* warnings_;
  std::vector<Error> errors_;
  Scope* scope_ = nullptr;
  std::size_t imported_nodes_ = 0;
  std::size_t max_nodes_ = 0;
  int depth_ = 0;
};

}  // namespace tenon::frontends::onnx

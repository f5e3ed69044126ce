#pragma once

#include "frontends/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::documents::megengine {

using Extents = std::vector<std::int64_t>;
/// The number of an operator or a var; they share one counter.
using ItemId = std::int64_t;

/// Formatting state of an object. MegEngine writes members in hash order and omits some: the order
/// and presence of members is not derivable.
struct Object {
  /// into Profile::orders
  std::uint32_t order = 0;
  /// members without a field
  frontends::JsonValue::Object other;
};

/// Interned lists of member names.
class MemberOrders {
 public:
  std::uint32_t intern(std::vector<std::string> names);
  std::span<const std::string> names(std::uint32_t order) const { return lists_[order]; }

 private:
  std::vector<std::vector<std::string>> lists_;
  std::map<std::vector<std::string>, std::uint32_t> known_;
};

/// Seconds: times of an operator's launch, of its kernel's start, and of its end.
struct Times : Object {
  std::optional<double> start, kern, end;
};
/// An operator's times by thread (host) or by comp node (device).
struct Measured {
  ItemId opr = 0;
  std::vector<std::pair<std::string, Times>> at;
};

/// Memory traffic and operations of an operator.
struct OprFootprint : Object {
  ItemId opr = 0;
  /// bytes
  std::int64_t memory = 0;
  /// operations; null in the file for uncounted types
  std::optional<std::int64_t> computation;
  /// empty if unknown; without volatile outputs
  std::vector<Extents> in_shapes, out_shapes;
  /// strides of non-contiguous inputs
  std::vector<std::optional<Extents>> in_layouts;
  /// the operator's parameters
  frontends::JsonValue param;
};

struct Profiler : Object {
  std::vector<Measured> host, device;
  std::vector<OprFootprint> opr_footprint;
  frontends::JsonValue opr_internal_pf;
};

struct Extra : Object {
  std::optional<std::int64_t> priority, input_update_time, dfs_step_num;
};
/// The vars that a comp node waits for.
struct Waiting : Object {
  std::string comp_node;
  std::vector<ItemId> dev_ready;
};
struct Operator : Object {
  ItemId id = 0;
  std::string name, type;
  std::vector<ItemId> input, output;
  Extra extra;
  /// Null for an operator that is not executed and only serves static inference.
  std::optional<std::vector<Waiting>> waiting_spec;
};

/// Inference of a var's shape or value before a run.
struct InferTag : Object {
  struct Dep : Object {
    ItemId var = 0;
    /// SHAPE or VALUE
    std::string dep_type;
  };
  /// NO_DESC, CONST, RT_STATIC, MISSING_INP
  std::string infer_type;
  std::vector<Dep> deps;
  /// Null, extents or elements, or a text in their place ("Large Array").
  std::variant<std::nullptr_t, std::vector<double>, std::string> inferred_result;
};
struct StaticInferTags : Object {
  InferTag shape, value;
};

struct TensorLayout : Object {
  std::string dtype;
  Extents shape, stride;
};
/// The part of a chunk that contains a var.
struct MemPlan : Object {
  std::string mem_chunk_id;
  TensorLayout layout;
  std::int64_t offset_byte = 0;
};
struct VarNode : Object {
  ItemId id = 0;
  std::string name, comp_node;
  std::vector<std::string> flag;
  std::optional<MemPlan> mem_plan;
  /// null once released
  std::optional<std::int64_t> dev_ptr;
  /// the last address; 0 without one
  std::optional<std::int64_t> prev_dev_ptr;
  /// absent if that is 0
  std::optional<std::int64_t> prev_dev_ptr_end;
  std::optional<ItemId> mem_readonly_fwd_src, force_update_src;
  StaticInferTags static_infer_tags;
};

/// One allocation.
struct MemChunk : Object {
  /// "chk" and the owner's number
  std::string key, id;
  ItemId owner_var = 0;
  std::int64_t size = 0;
  std::optional<std::int64_t> dev_ptr;
};

struct GraphExec : Object {
  std::vector<ItemId> comp_seq;
  std::vector<Operator> operators;
  std::vector<VarNode> vars;
  std::vector<MemChunk> mem_chunks;
};

/// A whole file; every list is in the file's order.
struct MegEngineProfile : Object {
  Profiler profiler;
  GraphExec graph_exec;
  MemberOrders orders;

  bool has(const Object& object, std::string_view member) const;
};

/// Reads a file. Throws Error with line and column, or the JSON path, for other contents.
MegEngineProfile parse_profile(std::string_view text, std::string_view source);
/// Prints the file with MegEngine's spacing and escapes.
std::string print_profile(const MegEngineProfile& profile);

}  // namespace tenon::documents::megengine

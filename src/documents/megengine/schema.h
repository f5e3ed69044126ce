#pragma once

#include "documents/megengine/tables.h"

#include <concepts>
#include <type_traits>

// Members of every object in a profile, defined once for reader and printer.
namespace tenon::documents::megengine {

/// Encodings of values in the file.
struct Text {};
/// of an operator or a var, as a text
struct ObjectId {};
struct Count {};
struct Int32 {};
struct Integer {};
struct ExtentNumber {};
/// infinities and NaN are texts
struct Real {};
/// kept verbatim
struct AnyJson {};
/// null, numbers, or a text in their place
struct Inferred {};
/// an object with the members of `fields`
struct Record {};
/// Repeats the key of the object.
template <class Key>
struct Again {
  const Key& key;
};
struct Kind {
  /// constant
  std::string_view word;
};
template <class Value>
struct OrNull {};
template <class Value>
struct ListOf {};
/// An object whose members are rows by key.
template <class Value>
struct ByKey {};

template <class T, class Row>
concept Is = std::same_as<std::remove_const_t<T>, Row>;

/// Key and contents of a row of `ByKey`.
auto& key_of(Is<Measured> auto& row) { return row.opr; }
auto& key_of(Is<OprFootprint> auto& row) { return row.opr; }
auto& key_of(Is<Operator> auto& row) { return row.id; }
auto& key_of(Is<VarNode> auto& row) { return row.id; }
auto& key_of(Is<Waiting> auto& row) { return row.comp_node; }
auto& key_of(Is<MemChunk> auto& row) { return row.key; }
auto& key_of(Is<std::pair<std::string, Times>> auto& row) { return row.first; }
auto& value_of(auto& row) { return row; }
auto& value_of(Is<Measured> auto& row) { return row.at; }
auto& value_of(Is<std::pair<std::string, Times>> auto& row) { return row.second; }

/// Calls `member` with each member's name, encoding and field; `member.needed` for required ones.
void fields(auto& member, Is<Times> auto& row) {
  member("start", OrNull<Real>(), row.start);
  member("kern", OrNull<Real>(), row.kern);
  member("end", OrNull<Real>(), row.end);
}

void fields(auto& member, Is<OprFootprint> auto& row) {
  member.needed("memory", Count(), row.memory);
  member("computation", OrNull<Count>(), row.computation);
  member.needed("in_shapes", ListOf<ListOf<ExtentNumber>>(), row.in_shapes);
  member.needed("out_shapes", ListOf<ListOf<ExtentNumber>>(), row.out_shapes);
  member("in_layouts", ListOf<OrNull<ListOf<Integer>>>(), row.in_layouts);
  member("param", AnyJson(), row.param);
}

void fields(auto& member, Is<Profiler> auto& row) {
  member("host", ByKey<ByKey<Record>>(), row.host);
  member("device", ByKey<ByKey<Record>>(), row.device);
  member("opr_footprint", ByKey<Record>(), row.opr_footprint);
  member("opr_internal_pf", AnyJson(), row.opr_internal_pf);
}

void fields(auto& member, Is<Extra> auto& row) {
  member("priority", OrNull<Int32>(), row.priority);
  member("input_update_time", OrNull<Int32>(), row.input_update_time);
  member("dfs_step_num", OrNull<Int32>(), row.dfs_step_num);
}

void fields(auto& member, Is<Waiting> auto& row) {
  member("dev_ready", ListOf<ObjectId>(), row.dev_ready);
}

void fields(auto& member, Is<Operator> auto& row) {
  member.needed("id", Again<ItemId>{row.id}, row.id);
  member.needed("name", Text(), row.name);
  member.needed("type", Text(), row.type);
  member.needed("input", ListOf<ObjectId>(), row.input);
  member.needed("output", ListOf<ObjectId>(), row.output);
  member("extra", Record(), row.extra);
  member("waiting_spec", OrNull<ByKey<Record>>(), row.waiting_spec);
  member("node_type", Kind{"operator"}, row.type);
}

void fields(auto& member, Is<InferTag::Dep> auto& row) {
  member.needed("var", ObjectId(), row.var);
  member.needed("dep_type", Text(), row.dep_type);
}

void fields(auto& member, Is<InferTag> auto& row) {
  member("infer_type", Text(), row.infer_type);
  member("deps", ListOf<Record>(), row.deps);
  member("inferred_result", Inferred(), row.inferred_result);
  member("node_type", Kind{"static_infer_tag"}, row.infer_type);
}

void fields(auto& member, Is<StaticInferTags> auto& row) {
  member("SHAPE", Record(), row.shape);
  member("VALUE", Record(), row.value);
}

void fields(auto& member, Is<TensorLayout> auto& row) {
  member.needed("dtype", Text(), row.dtype);
  member.needed("shape", ListOf<ExtentNumber>(), row.shape);
  member.needed("stride", ListOf<Integer>(), row.stride);
}

void fields(auto& member, Is<MemPlan> auto& row) {
  member.needed("mem_chunk_id", Text(), row.mem_chunk_id);
  member.needed("layout", Record(), row.layout);
  member("offset_byte", Count(), row.offset_byte);
}

void fields(auto& member, Is<VarNode> auto& row) {
  member.needed("id", Again<ItemId>{row.id}, row.id);
  member.needed("name", Text(), row.name);
  member("comp_node", Text(), row.comp_node);
  member("flag", ListOf<Text>(), row.flag);
  member("mem_plan", OrNull<Record>(), row.mem_plan);
  member("dev_ptr", OrNull<Count>(), row.dev_ptr);
  member("prev_dev_ptr", OrNull<Count>(), row.prev_dev_ptr);
  member("prev_dev_ptr_end", OrNull<Count>(), row.prev_dev_ptr_end);
  member("mem_readonly_fwd_src", OrNull<ObjectId>(), row.mem_readonly_fwd_src);
  member("force_update_src", OrNull<ObjectId>(), row.force_update_src);
  member("static_infer_tags", Record(), row.static_infer_tags);
  member("node_type", Kind{"var"}, row.name);
}

void fields(auto& member, Is<MemChunk> auto& row) {
  member.needed("id", Again<std::string>{row.key}, row.id);
  member.needed("owner_var", ObjectId(), row.owner_var);
  member.needed("size", Count(), row.size);
  member("dev_ptr", OrNull<Count>(), row.dev_ptr);
  member("node_type", Kind{"mem_chunk"}, row.id);
}

void fields(auto& member, Is<GraphExec> auto& row) {
  member.needed("comp_seq", ListOf<ObjectId>(), row.comp_seq);
  member.needed("operator", ByKey<Record>(), row.operators);
  member.needed("var", ByKey<Record>(), row.vars);
  member("mem_chunk", ByKey<Record>(), row.mem_chunks);
}

void fields(auto& member, Is<MegEngineProfile> auto& row) {
  member("profiler", Record(), row.profiler);
  member.needed("graph_exec", Record(), row.graph_exec);
}

}  // namespace tenon::documents::megengine

#pragma once

#include "base/error.h"
#include "ir/graph.h"

// Ops for tests with every feature a node can have, so that these tests do not depend on real ones.
namespace tenon::fake {

inline Attributes without_defaults(const OpDef& op, Attributes attrs) {
  for (const AttrDef& def : op.attrs) {
    const AttrValue* value = attrs.find(def.name);
    if (value && def.default_value && equal(*value, *def.default_value)) attrs.erase(def.name);
  }
  return attrs;
}

inline InferOutput of_types(std::vector<Type> types) { return {std::move(types), {}}; }

inline OpDef constant() {
  OpDef op;
  op.name = "constant";
  op.results = {{"y"}};
  op.attrs = {{"value", AttrKind::Constant, true, {}, {}}};
  op.infer = [](const InferInput& in) {
    return of_types({std::get<Constant>(*in.attrs.find("value")).type()});
  };
  return op;
}

inline OpDef add() {
  OpDef op;
  op.name = "add";
  op.operands = {{"a"}, {"b"}};
  op.results = {{"y"}};
  op.infer = [](const InferInput& in) {
    const Type& a = in.operands[0].type;
    const Type& b = in.operands[1].type;
    if (a.is_known() && b.is_known() && !(a == b)) {
      throw Error("add: types differ").got("a: ", a, ", b: ", b);
    }
    return of_types({a});
  };
  return op;
}

inline OpDef split() {
  OpDef op;
  op.name = "split";
  op.operands = {{"x"}};
  op.results = {{"parts", false, true}};
  op.attrs = {{"axis", AttrKind::Integer, false, AttrValue(Dim(0)), {}}};
  op.canonical_attributes = [names = op](Attributes attrs) {
    return without_defaults(names, attrs);
  };
  op.infer = [](const InferInput& in) {
    return of_types(std::vector<Type>(in.result_count, in.operands[0].type));
  };
  return op;
}

inline OpDef pool() {
  OpDef op;
  op.name = "pool";
  op.operands = {{"x"}, {"scale", true}, {"bias", true}};
  op.results = {{"y"}, {"indices", true}, {"count", true}};
  op.attrs = {{"kernel", AttrKind::Integers, false, {}, {}},
              {"mode", AttrKind::Word, false, AttrValue(std::string("max")), {"max", "average"}},
              {"flag", AttrKind::Bool, false, {}, {}},
              {"axis", AttrKind::Integer, false, {}, {}},
              {"factor", AttrKind::Real, false, {}, {}},
              {"label", AttrKind::Text, false, {}, {}},
              {"to", AttrKind::Element, false, {}, {}},
              {"factors", AttrKind::Reals, false, {}, {}},
              {"labels", AttrKind::Texts, false, {}, {}},
              {"fill", AttrKind::Constant, false, {}, {}},
              {"like", AttrKind::Type, false, {}, {}}};
  op.canonical_attributes = [names = op](Attributes attrs) {
    return without_defaults(names, attrs);
  };
  op.infer = [](const InferInput& in) {
    return of_types({in.operands[0].type, in.operands[0].type, in.operands[0].type});
  };
  return op;
}

inline OpDef reshape() {
  OpDef op;
  op.name = "reshape";
  op.operands = {{"x"}, {"shape", true, false, true}};
  op.results = {{"y"}};
  op.attrs = {{"shape", AttrKind::Integers, true, {}, {}}};
  op.infer = [](const InferInput& in) {
    const AttrValue* shape = in.attrs.find("shape");
    if (!shape && in.operands[1].value) {
      const std::vector<std::int64_t> extents = in.operands[1].value->integers();
      return of_types({TensorType{DType::F32, Dims(extents.begin(), extents.end()), {}}});
    }
    if (!shape) return of_types({Type{}});
    return of_types({TensorType{DType::F32, std::get<Dims>(*shape), {}}});
  };
  return op;
}

inline OpDef nonzero() {
  OpDef op;
  op.name = "nonzero";
  op.operands = {{"x"}};
  op.results = {{"y"}};
  op.infer = [](const InferInput&) {
    InferOutput output = of_types({TensorType{DType::I64, {Dim::symbol("?0"), 2}, {}}});
    output.known.push_back(Dims{Dim::symbol("?0")});
    return output;
  };
  return op;
}

inline OpDef choose() {
  OpDef op;
  op.name = "if";
  op.operands = {{"condition"}, {"captures", false, true}};
  op.results = {{"results", false, true}};
  op.bodies = {"then", "else"};
  op.infer = [](const InferInput& in) {
    std::vector<Type> types;
    for (ValueId output : in.bodies[0].outputs()) types.push_back(in.bodies[0].value(output).type);
    return of_types(types);
  };
  return op;
}

inline OpDef each() {
  OpDef op;
  op.name = "each";
  op.operands = {{"seed", true}, {"xs", false, true}};
  op.results = {};
  op.bodies = {"body*"};
  return op;
}

inline const OpTable& table() {
  static const std::vector<OpDef> ops = {constant(), add(),     split(),  pool(),
                                         reshape(),  nonzero(), choose(), each()};
  static const OpTable found([] {
    std::vector<const OpDef*> pointers;
    for (const OpDef& op : ops) pointers.push_back(&op);
    return pointers;
  }());
  return found;
}

inline Graph::NewNode node(std::string_view op, std::vector<ValueId> operands,
                           std::vector<std::string> results = {}) {
  Graph::NewNode made;
  made.op = &table().get(op);
  made.operands = std::move(operands);
  made.results = std::move(results);
  return made;
}

}  // namespace tenon::fake

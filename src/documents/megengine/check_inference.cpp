#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace tenon::documents::megengine {
namespace {

// Values are listed for vectors shorter than the maximum rank of a tensor.
constexpr std::int64_t kMaxRank = 7;

std::string text_of(const std::vector<double>& list) {
  std::string text = "[";
  for (std::size_t k = 0; k < list.size(); ++k) {
    const bool is_whole = std::fabs(list[k]) < 1e15 && std::floor(list[k]) == list[k];
    text += concat(k == 0 ? "" : ", ", is_whole ? std::to_string(static_cast<std::int64_t>(list[k]))
                                                : format_real(list[k]));
  }
  return text + "]";
}

using Deps = std::vector<std::string>;  // "SHAPE 12"

std::string join_deps(const Deps& deps) { return deps.empty() ? "nothing" : join(deps, ", "); }

bool infers_value_of_inputs(std::string_view type) {
  return type == "Elemwise" || type == "Concat" || type == "Subtensor" || type == "Reshape" ||
         type == "PowC" || type == "TypeCvt" || type == "Broadcast" || type == "Dimshuffle" ||
         type == "AxisAddRemove";
}

// Operator types with known inference rules; for others only the locality of sources is checked.
bool has_known_rules(std::string_view type) {
  static constexpr std::string_view kTypes[] = {
      "ConvolutionForward", "ConvBiasForward", "PoolingForward", "MatrixMul",
      "BatchedMatrixMul",   "Elemwise",        "Reduce",         "Reshape",
      "GetVarShape",        "Concat",          "Subtensor",      "TypeCvt",
      "ImmutableTensor",    "InputCallback",   "OutputCallback", "Host2DeviceCopy"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

class InferenceCheck {
 public:
  explicit InferenceCheck(const CheckContext& context) : context_(context) {}

  void run(std::size_t var) {
    const VarNode& node = context_.vars()[var];
    check_shape(var, node);
    check_value(var, node);
    for (const bool is_shape : {true, false}) {
      const InferTag& tag = is_shape ? node.static_infer_tags.shape : node.static_infer_tags.value;
      if (tag.infer_type.empty()) continue;
      check_deps(var, node, tag, is_shape);
      check_type(var, node, tag, is_shape);
    }
  }

 private:
  auto place(const VarNode& node, bool is_shape, std::string_view member) const {
    return [&node, is_shape, member] {
      return concat(var_path(node), ".static_infer_tags.", is_shape ? "SHAPE." : "VALUE.", member);
    };
  }

  void check_shape(std::size_t var, const VarNode& node) {
    const auto* stated =
        std::get_if<std::vector<double>>(&node.static_infer_tags.shape.inferred_result);
    if (stated == nullptr) return;
    const auto here = place(node, true, "inferred_result");
    if (is_workspace(node)) {
      // Bytes must match the allocated memory.
      const auto span = stated_span(node);
      const bool is_empty = stated->size() == 1 && stated->front() == 0;
      const std::size_t opr = context_.index.producer[var];
      const bool ran = context_.index.host[opr] || context_.index.device[opr];
      if (span) {
        context_.findings.compare("static_infer_tags: bytes of workspace", here, text_of(*stated),
                                  concat("[", *span, "]"));
      } else if (ran) {
        context_.findings.compare("static_infer_tags: bytes of workspace", here, text_of(*stated),
                                  is_empty ? text_of(*stated) : "[0]");
      }
      return;
    }
    if (!context_.facts[var].shape.empty()) {
      context_.findings.compare("static_infer_tags: shape", here, text_of(*stated),
                                to_text(context_.facts[var].shape));
    }
  }

  void check_value(std::size_t var, const VarNode& node) {
    const InferTag& tag = node.static_infer_tags.value;
    const auto here = place(node, false, "inferred_result");
    const Extents& shape = context_.facts[var].shape;
    const bool is_small = shape.size() == 1 && shape.front() < kMaxRank;
    if (std::holds_alternative<std::string>(tag.inferred_result)) {
      context_.findings.compare("static_infer_tags: large values are not told", here,
                                std::get<std::string>(tag.inferred_result),
                                is_small ? "a list" : "Large Array");
      return;
    }
    const auto* stated = std::get_if<std::vector<double>>(&tag.inferred_result);
    if (stated == nullptr) return;
    if (!shape.empty()) {
      context_.findings.compare("static_infer_tags: large values are not told", here,
                                concat("[", stated->size(), "] elements"),
                                concat(is_small ? to_text(shape) : "no", " elements"));
    }
    const ValueId value = context_.inference.value[var];
    const Dims* known = value ? context_.inference.graph.known_elements(value) : nullptr;
    if (known == nullptr || !all_constant(*known)) return;
    if (context_.inference.graph.constant_of(value) != nullptr) {
      // The document states the value of a constant, and the constant's name repeats it.
      context_.findings.hold("static_infer_tags: value");
      return;
    }
    context_.findings.compare("static_infer_tags: value", here, text_of(*stated),
                              to_text(constants(*known)));
  }

  Deps of_inputs(std::size_t opr, std::string_view kind) const {
    Deps deps;
    for (ItemId input : context_.operators()[opr].input) deps.push_back(concat(kind, " ", input));
    return deps;
  }

  // Returns the sources of inference for a known type.
  Deps expected(std::size_t var, const VarNode& node, bool is_shape) const {
    const std::size_t opr = context_.index.producer[var];
    const Operator& maker = context_.operators()[opr];
    Deps deps;
    if (is_shape && is_workspace(node)) {
      deps = of_inputs(opr, "SHAPE");
      for (std::size_t output : context_.index.outputs[opr]) {
        if (!is_workspace(context_.vars()[output]))
          deps.push_back(concat("SHAPE ", context_.vars()[output].id));
      }
    } else if (is_shape && maker.type == "Reshape") {
      deps = of_inputs(opr, "SHAPE");
      if (maker.input.size() > 1) deps[1] = concat("VALUE ", maker.input[1]);
    } else if (is_shape && maker.type == "Reduce" && maker.input.size() > 1) {
      deps = {concat("VALUE ", maker.input[1])};
    } else if (is_shape) {
      deps = of_inputs(opr, "SHAPE");
    } else if (maker.type == "GetVarShape") {
      deps = of_inputs(opr, "SHAPE");
    } else if (maker.type == "Reduce") {
      deps = {concat("VALUE ", maker.input.empty() ? 0 : maker.input[0]),
              concat("SHAPE ", node.id)};
    } else {
      deps = of_inputs(opr, "VALUE");
    }
    return deps;
  }

  void check_deps(std::size_t var, const VarNode& node, const InferTag& tag, bool is_shape) {
    const std::size_t opr = context_.index.producer[var];
    const Operator& maker = context_.operators()[opr];
    Deps stated;
    for (const InferTag::Dep& dep : tag.deps) stated.push_back(concat(dep.dep_type, " ", dep.var));
    const auto here = place(node, is_shape, "deps");
    const std::string_view kind = "static_infer_tags: sources";
    if (tag.infer_type == "NO_DESC") {
      context_.findings.compare(kind, here, join_deps(stated), join_deps({}));
      return;
    }
    Deps should_be = expected(var, node, is_shape);
    const bool repeats = std::unordered_set<ItemId>(maker.input.begin(), maker.input.end()).size() <
                         maker.input.size();
    const bool is_ruled =
        has_known_rules(maker.type) && !repeats &&
        (is_shape || infers_value_of_inputs(maker.type) || maker.type == "GetVarShape" ||
         maker.type == "Reduce" || maker.input.empty());
    if (is_ruled && maker.type != "Subtensor") {
      // The size of a workspace also depends on a flag that is raised when its limit is reset.
      const bool has_mark =
          is_workspace(node) && stated.size() == should_be.size() + 1 && is_mark(tag.deps.back());
      if (has_mark) should_be.push_back(concat("VALUE ", mark_));
      context_.findings.compare(kind, here, join_deps(stated), join_deps(should_be));
      return;
    }
    // Other types depend on their inputs and on sibling outputs, in any order.
    std::unordered_set<ItemId> near(maker.input.begin(), maker.input.end());
    near.insert(maker.output.begin(), maker.output.end());
    for (const InferTag::Dep& dep : tag.deps) {
      const bool is_near = near.contains(dep.var) || is_mark(dep);
      context_.findings.require(is_near, kind, here, join_deps(stated), join_deps(should_be));
    }
  }

  // The flag is one var for the whole graph: the first var that is referenced in that role.
  bool is_mark(const InferTag::Dep& dep) {
    const std::size_t opr = context_.index.producer[context_.index.vars.at(dep.var)];
    if (dep.dep_type != "VALUE" || context_.operators()[opr].type != "Host2DeviceCopy")
      return false;
    if (mark_ < 0) mark_ = dep.var;
    return mark_ == dep.var;
  }

  // The inference type is the latest of the sources' types.
  void check_type(std::size_t var, const VarNode& node, const InferTag& tag, bool is_shape) {
    const std::size_t opr = context_.index.producer[var];
    const std::string& type = tag.infer_type;
    const auto here = place(node, is_shape, "infer_type");
    if (tag.deps.empty()) {
      const bool is_constant = context_.operators()[opr].type == "ImmutableTensor";
      const bool is_known_word = type == "NO_DESC" || type == "CONST" || type == "RT_STATIC";
      context_.findings.compare("static_infer_tags: when", here, type,
                                is_constant     ? "CONST"
                                : is_known_word ? type
                                                : "NO_DESC");
      return;
    }
    bool is_missing = false, is_static = true;
    for (const InferTag::Dep& dep : tag.deps) {
      const StaticInferTags& tags =
          context_.vars()[context_.index.vars.at(dep.var)].static_infer_tags;
      const std::string& source =
          dep.dep_type == "SHAPE" ? tags.shape.infer_type : tags.value.infer_type;
      is_missing = is_missing || source == "NO_DESC" || source == "MISSING_INP";
      is_static = is_static && source == "CONST";
    }
    context_.findings.compare("static_infer_tags: when", here, type,
                              is_missing  ? "MISSING_INP"
                              : is_static ? "CONST"
                                          : "RT_STATIC");
  }

  const CheckContext& context_;
  ItemId mark_ = -1;
};

// Flags have a fixed order, and some exclude or imply others.
void check_flags(const CheckContext& context, const VarNode& node) {
  std::vector<std::string> sorted;
  for (std::string_view flag : flag_names()) {
    if (has_flag(node, flag)) sorted.emplace_back(flag);
  }
  const auto place = [&] { return var_path(node) + ".flag"; };
  context.findings.compare("flags: known and in order", place, join(node.flag, ", "),
                           join(sorted, ", "));
  const auto require = [&](bool holds, std::string_view rule) {
    context.findings.require(holds, "flags: fit together", place, join(node.flag, ", "),
                             std::string(rule));
  };
  require(!has_flag(node, "RT_FORCE_DYNAMIC_MEM_ALLOC") || !has_flag(node, "NO_SYS_MEM_ALLOC"),
          "not both RT_FORCE_DYNAMIC_MEM_ALLOC and NO_SYS_MEM_ALLOC");
  require(
      !has_flag(node, "DISALLOW_RT_FORCE_DYNAMIC_MEM_ALLOC") || has_flag(node, "NO_MEM_RECLAIM"),
      "DISALLOW_RT_FORCE_DYNAMIC_MEM_ALLOC only with NO_MEM_RECLAIM");
  require(!has_flag(node, "NO_ALLOC_IF_UNUSED") || !has_flag(node, "NO_SYS_MEM_ALLOC"),
          "not both NO_ALLOC_IF_UNUSED and NO_SYS_MEM_ALLOC");
  require(is_workspace(node) == node.name.ends_with(":workspace"),
          "VOLATILE_CONTENT of workspaces");
}

}  // namespace

void check_inference(const CheckContext& context) {
  InferenceCheck check(context);
  for (std::size_t var = 0; var < context.vars().size(); ++var) {
    check.run(var);
    check_flags(context, context.vars()[var]);
  }
}

}  // namespace tenon::documents::megengine

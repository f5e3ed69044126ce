#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/cost.h"

namespace tenon::documents::megengine {
namespace {

// Returns the numeric parameters as text: "pad_h 3, stride_h 2".
std::string numbers_of(const frontends::JsonValue& param) {
  std::string text;
  if (const auto* object = std::get_if<frontends::JsonValue::Object>(&param.value)) {
    for (const auto& [name, value] : *object) {
      if (const auto* number = std::get_if<std::int64_t>(&value.value)) {
        text += concat(text.empty() ? "" : ", ", name, " ", *number);
      }
    }
  }
  return text.empty() ? "parameters" : text;
}

class FootprintCheck {
 public:
  FootprintCheck(const CheckContext& context, std::size_t opr)
      : context_(context),
        opr_(opr),
        node_(context.operators()[opr]),
        footprint_(*context.index.footprint[opr]) {}

  auto place(std::string_view member) const {
    return [this, member] { return footprint_path(node_) + std::string(member); };
  }

  void run() {
    shapes();
    context_.findings.compare("footprint: memory", place(".memory"), footprint_.memory, memory());
    const std::int64_t computation = this->computation();
    // An absent value is null in the document.
    const auto text = [](std::optional<std::int64_t> value) {
      return value ? std::to_string(*value) : "null";
    };
    context_.findings.compare("footprint: computation", place(".computation"),
                              text(footprint_.computation),
                              computation == 0 ? "null" : std::to_string(computation));
    parameters();
  }

 private:
  // Returns the expected shape of an input or output; `stated` is the document's.
  Extents expected(std::size_t var, const Extents& stated, bool may_be_unknown) const {
    return stated.empty() && may_be_unknown ? Extents{} : context_.facts[var].shape;
  }

  void shapes() {
    const auto& inputs = context_.index.inputs[opr_];
    context_.findings.compare("footprint: shapes", place(".in_shapes"),
                              concat(footprint_.in_shapes.size(), " shapes"),
                              concat(inputs.size(), " shapes"));
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      // Inputs that only the host reads have no device shape.
      const bool may_be_unknown = is_host_input(node_.type, k) ||
                                  !context_.index.is_executed(context_.index.producer[inputs[k]]);
      const Extents stated = k < footprint_.in_shapes.size() ? footprint_.in_shapes[k] : Extents{};
      in_.push_back(expected(inputs[k], stated, may_be_unknown));
      if (k < footprint_.in_shapes.size())
        compare_shape(concat(".in_shapes[", k, "]"), stated, in_.back());
    }
    std::size_t position = 0;
    for (std::size_t var : context_.index.outputs[opr_]) {
      if (is_workspace(context_.vars()[var])) continue;
      // An operator that allocates elsewhere has no shape before the run.
      const bool may_be_unknown =
          has_flag(context_.vars()[var], "NO_SYS_MEM_ALLOC") || !context_.inference.value[var];
      const Extents stated =
          position < footprint_.out_shapes.size() ? footprint_.out_shapes[position] : Extents{};
      out_.push_back(expected(var, stated, may_be_unknown));
      out_vars_.push_back(var);
      if (position < footprint_.out_shapes.size())
        compare_shape(concat(".out_shapes[", position, "]"), stated, out_.back());
      ++position;
    }
    context_.findings.compare("footprint: shapes", place(".out_shapes"),
                              concat(footprint_.out_shapes.size(), " shapes"),
                              concat(position, " shapes"));
  }

  void compare_shape(const std::string& member, const Extents& says,
                     const Extents& should_be) const {
    context_.findings.compare("footprint: shapes", place(member), to_text(says),
                              to_text(should_be));
  }

  std::int64_t bytes(std::size_t var, const Extents& shape) const {
    VarFacts fact = context_.facts[var];
    fact.shape = shape;
    return fact.byte_count();
  }

  std::int64_t memory() const {
    std::int64_t total = 0;
    const auto& inputs = context_.index.inputs[opr_];
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!is_host_input(node_.type, k)) total = saturating_sum(total, bytes(inputs[k], in_[k]));
    }
    for (std::size_t k = 0; k < out_.size(); ++k)
      total = saturating_sum(total, bytes(out_vars_[k], out_[k]));
    return total;
  }

  std::int64_t computation() const {
    if (!Param(&footprint_.param).has(kOwnParam)) {
      const std::int64_t counted = computation_of(node_.type, Param(&footprint_.param), in_, out_);
      // A counted copy is counted like other data movement.
      return counted == 0 && node_.type == "Copy" && footprint_.computation && !out_.empty()
                 ? count_of(out_.front())
                 : counted;
    }
    // Native Tenon operators are counted by their definition.
    for (std::size_t var : out_vars_) {
      const ValueId value = context_.inference.value[var];
      if (!value || !context_.inference.graph.value(value).producer) continue;
      return tenon_computation_of(context_.inference.graph,
                                  context_.inference.graph.value(value).producer);
    }
    return footprint_.computation.value_or(0);
  }

  // Checks parameters that constrain shapes without determining them.
  void parameters() const {
    const Param param(&footprint_.param);
    if (node_.type == "Reshape" && param.has("axis") && !context_.index.inputs[opr_].empty()) {
      const auto* target = context_.index.inputs[opr_].size() > 1
                               ? stated_value(context_.vars()[context_.index.inputs[opr_][1]])
                               : nullptr;
      if (target == nullptr) return;
      for (std::size_t k = 0; k < target->size(); ++k) {
        if ((*target)[k] != -1) continue;
        context_.findings.compare("footprint: parameters", place(".param.axis"),
                                  param.integer("axis", 0), static_cast<std::int64_t>(k));
      }
    }
    if (node_.type == "Dimshuffle" && param.has("ndim") && !in_.empty()) {
      context_.findings.compare("footprint: parameters", place(".param.ndim"),
                                param.integer("ndim", 0), static_cast<std::int64_t>(in_[0].size()));
    }
    if (node_.type == "AxisAddRemove" && param.has("nr_desc")) {
      const frontends::JsonValue* desc = param.find("desc");
      const auto* list = desc ? std::get_if<frontends::JsonValue::Array>(&desc->value) : nullptr;
      context_.findings.compare("footprint: parameters", place(".param.nr_desc"),
                                param.integer("nr_desc", 0),
                                list ? static_cast<std::int64_t>(list->size()) : 0);
    }
  }

  const CheckContext& context_;
  std::size_t opr_;
  const Operator& node_;
  const OprFootprint& footprint_;
  std::vector<Extents> in_, out_;
  std::vector<std::size_t> out_vars_;
};

// Strides of inputs are listed if one of the inputs is not contiguous.
void check_layouts(const CheckContext& context, std::size_t opr) {
  const OprFootprint& footprint = *context.index.footprint[opr];
  const auto& inputs = context.index.inputs[opr];
  if (!context.profile.has(footprint, "in_layouts")) return;
  const std::string place = footprint_path(context.operators()[opr]) + ".in_layouts";
  context.findings.compare("footprint: layouts", place,
                           concat(footprint.in_layouts.size(), " layouts"),
                           concat(inputs.size(), " layouts"));
  for (std::size_t k = 0; k < std::min(inputs.size(), footprint.in_layouts.size()); ++k) {
    const VarNode& var = context.vars()[inputs[k]];
    const auto text = [](const std::optional<Extents>& strides) {
      return strides ? to_text(*strides) : "null";
    };
    if (!var.mem_plan) continue;
    const bool is_contiguous =
        var.mem_plan->layout.stride == contiguous_strides(var.mem_plan->layout.shape);
    context.findings.compare("footprint: layouts", concat(place, "[", k, "]"),
                             text(footprint.in_layouts[k]),
                             is_contiguous ? "null" : to_text(var.mem_plan->layout.stride));
  }
}

}  // namespace

void check_footprints(const CheckContext& context) {
  std::vector<const Inference::Problem*> problems(context.operators().size());
  for (const Inference::Problem& problem : context.inference.problems)
    problems[problem.opr] = &problem;
  std::vector<const Inference::Disagreement*> disagreements(context.vars().size());
  for (const auto& disagreement : context.inference.disagreements)
    disagreements[disagreement.var] = &disagreement;

  for (std::size_t opr = 0; opr < context.operators().size(); ++opr) {
    const Operator& node = context.operators()[opr];
    const OprFootprint* footprint = context.index.footprint[opr];
    const auto place = [&] {
      return footprint ? footprint_path(node) + ".param" : operator_path(node);
    };
    const auto says = [&] { return footprint ? numbers_of(footprint->param) : node.type; };
    if (problems[opr] != nullptr && !problems[opr]->is_unsupported) {
      context.findings.miss("operator fits its operands", place, says(), problems[opr]->message);
    } else if (problems[opr] == nullptr) {
      context.findings.hold("operator fits its operands");
    }
    for (std::size_t var : context.index.outputs[opr]) {
      if (const auto* disagreement = disagreements[var]) {
        context.findings.miss("shape that follows from the parameters", place,
                              concat(says(), ", which gives ", to_text(disagreement->inferred)),
                              concat("what gives ", to_text(disagreement->stated)));
      } else if (context.facts[var].is_inferred) {
        context.findings.hold("shape that follows from the parameters");
      }
    }
    if (footprint != nullptr) {
      FootprintCheck(context, opr).run();
      check_layouts(context, opr);
    }
  }
  // A profile with footprints has one for every executed operator.
  if (context.profile.profiler.opr_footprint.empty()) return;
  for (std::size_t opr : context.index.sequence) {
    const auto place = [&] { return footprint_path(context.operators()[opr]); };
    context.findings.compare("footprint: there", place,
                             context.index.footprint[opr] ? "one" : "none", "one");
  }
}

}  // namespace tenon::documents::megengine

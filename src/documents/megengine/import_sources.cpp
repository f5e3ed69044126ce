#include "base/text.h"
#include "documents/megengine/importer.h"
#include "documents/seeded_weight.h"
#include "ir/tensor.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::documents::megengine {
namespace {

// Damps branches before residual additions: sums in a deep network would grow without bound.
constexpr std::int64_t kBranchDamping = 16;
constexpr double kFactorLow = 0.5, kFactorHigh = 1.5;

bool is_convolution(std::string_view type) {
  return type == "ConvolutionForward" || type == "ConvBiasForward" || type == "ConvBias";
}
bool is_matrix_product(std::string_view type) {
  return type == "MatrixMul" || type == "BatchedMatrixMul";
}

// "const{64,3,7,7}[50]" -> [64, 3, 7, 7]
Extents named_extents(std::string_view name) {
  Extents shape;
  const std::size_t end = name.find('}');
  if (!name.starts_with("const{") || end == std::string_view::npos) return shape;
  for (const std::string& part : split(name.substr(6, end - 6), ',')) {
    const auto extent = parse_integer(part);
    if (!extent || *extent < 0) return {};
    shape.push_back(*extent);
  }
  return shape;
}

// "const<-1>[511]" -> -1
std::optional<double> named_value(std::string_view name) {
  const std::size_t end = name.find('>');
  if (!name.starts_with("const<") || end == std::string_view::npos) return std::nullopt;
  return parse_real(name.substr(6, end - 6));
}

bool is_position(double value) { return value >= 0 && value < 1e15 && std::floor(value) == value; }

}  // namespace

const std::vector<double>* stated_value(const VarNode& var) {
  return std::get_if<std::vector<double>>(&var.static_infer_tags.value.inferred_result);
}

std::optional<std::int64_t> stated_span(const VarNode& var) {
  if (!var.prev_dev_ptr || *var.prev_dev_ptr == 0 || !var.prev_dev_ptr_end) return std::nullopt;
  return *var.prev_dev_ptr_end - *var.prev_dev_ptr;
}

Extents stated_shape(const MegEngineProfile& profile, const Index& index, std::size_t var) {
  const VarNode& node = profile.graph_exec.vars[var];
  std::vector<std::pair<Extents, int>> votes;
  const auto vote = [&](const Extents& shape) {
    if (shape.empty()) return;
    for (auto& [candidate, count] : votes) {
      if (candidate == shape) {
        ++count;
        return;
      }
    }
    votes.emplace_back(shape, 1);
  };

  if (const auto* list =
          std::get_if<std::vector<double>>(&node.static_infer_tags.shape.inferred_result)) {
    Extents shape;
    for (double extent : *list) {
      if (is_position(extent)) shape.push_back(static_cast<std::int64_t>(extent));
    }
    if (shape.size() == list->size()) vote(shape);
  }
  if (node.mem_plan) vote(node.mem_plan->layout.shape);
  const std::size_t producer = index.producer[var];
  if (const OprFootprint* made = index.footprint[producer]) {
    std::size_t position = 0;
    for (std::size_t output : index.outputs[producer]) {
      if (output == var && !is_workspace(node) && position < made->out_shapes.size()) {
        vote(made->out_shapes[position]);
      }
      position += !is_workspace(profile.graph_exec.vars[output]);
    }
  }
  vote(named_extents(profile.graph_exec.operators[producer].name));
  // Examines a few readers only; a constant may have thousands.
  const std::size_t reader_count = std::min<std::size_t>(index.readers[var].size(), 4);
  for (std::size_t k = 0; k < reader_count; ++k) {
    const std::size_t reader = index.readers[var][k];
    const OprFootprint* read = index.footprint[reader];
    if (read == nullptr) continue;
    const std::size_t position = index.read_as[var][k];
    if (position < read->in_shapes.size()) vote(read->in_shapes[position]);
  }
  const auto best = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == votes.end() ? Extents{} : best->first;
}

// Seeds weights by their readers: contraction weights by fan-in, scales around one, and small
// shifts otherwise.
Constant MegEngineImporter::seeded_value(std::size_t var, DType dtype, const Extents& shape) const {
  const std::string& name = opr().name;
  std::int64_t fan_in = 0;
  bool is_factor = false;
  if (!index_.readers[var].empty()) {
    const std::size_t reader = index_.readers[var].front();
    const Operator& user = profile_.graph_exec.operators[reader];
    const OprFootprint* footprint = index_.footprint[reader];
    const Param user_param(footprint ? &footprint->param : nullptr);
    const std::size_t position = index_.read_as[var].front();
    if (is_convolution(user.type) && position == 1 && shape.size() >= 4) {
      const std::size_t first = shape.size() == 5 ? 2 : 1;
      fan_in = count_of(Extents(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end()));
      const std::size_t result =
          index_.outputs[reader].empty() ? 0 : index_.outputs[reader].front();
      for (std::size_t next :
           index_.outputs[reader].empty() ? std::vector<std::size_t>{} : index_.readers[result]) {
        const std::string mode = short_name(profile_.graph_exec.operators[next].name);
        const auto& terms = index_.inputs[next];
        const bool is_sum = mode.starts_with("ADD[") && terms.size() == 2;
        const auto is_computed = [&](std::size_t term) {
          return !index_.inputs[index_.producer[term]].empty();
        };
        if (is_sum && std::all_of(terms.begin(), terms.end(), is_computed)) {
          fan_in = saturating_product(fan_in, kBranchDamping);
          break;
        }
      }
    } else if (is_matrix_product(user.type) && shape.size() >= 2) {
      const bool is_transposed =
          user_param.boolean(position == 0 ? "transposeA" : "transposeB", false);
      fan_in = shape[shape.size() - (is_transposed == (position == 0) ? 2 : 1)];
    } else if (user.type == "Elemwise") {
      const std::string mode = user_param.text("mode", short_name(user.name));
      is_factor = mode.starts_with("MUL") || mode.starts_with("TRUE_DIV") ||
                  mode.starts_with("FUSE_MUL") || mode.starts_with("POW");
      is_factor = is_factor && (position < 2 || mode.starts_with("FUSE_MUL_ADD4"));
    } else if (user.type.starts_with("BatchNorm")) {
      is_factor = position == 1 || position == 4;  // scale and variance
    } else if (user.type == "batch_norm") {
      is_factor = position == 1 || position == 4;
    } else if (user.type == "layer_norm" || user.type == "rms_norm" || user.type == "group_norm") {
      is_factor = position == 1;
    }
  }
  const Constant seeded = seeded_weight(dtype, shape, name, fan_in);
  if (!is_factor || !is_float(dtype)) return seeded;
  return Constant::uniform(dtype, shape, seeded.seed(), kFactorLow, kFactorHigh);
}

void MegEngineImporter::sow(std::size_t k) {
  const std::size_t var = index_.outputs[opr_][k];
  const VarNode& node = profile_.graph_exec.vars[var];
  const Extents shape = stated_shape(profile_, index_, var);
  if (shape.empty()) throw Error("the document states no shape of the constant");
  if (node.mem_plan && !dtype_of(node.mem_plan->layout.dtype)) {
    unsupported(concat("element type ", node.mem_plan->layout.dtype));
  }
  const auto* value = stated_value(node);
  const std::optional<double> only = count_of(shape) == 1 ? named_value(opr().name) : std::nullopt;
  // Shapes and indices are computed in 64 bits; they are never executed.
  const DType fallback = (value || only) && !index_.is_executed(opr_) ? DType::I64 : DType::F32;
  const DType dtype = stated_dtype(var, shape).value_or(fallback);
  const bool has_elements =
      value && shape.size() == 1 && static_cast<std::int64_t>(value->size()) == shape.front();
  if (has_elements || only) {
    Tensor tensor(dtype, constants(stated_type(var, dtype, shape).dims));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double element = has_elements ? (*value)[static_cast<std::size_t>(i)] : *only;
      if (is_integer(dtype) && !(std::fabs(element) < 1e15))
        throw Error("a constant is out of range");
      tensor.set_real(i, element);
    }
    define(k, builder_.constant(tensor));
  } else {
    define(k, builder_.constant(
                  seeded_value(var, dtype, constants(stated_type(var, dtype, shape).dims))));
  }
  const TensorType type = stated_type(var, dtype, shape);
  if (!type.layout.is_empty()) builder_.graph().set_type(value_[var], type);
}

void MegEngineImporter::constant() {
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) sow(k);
}

void MegEngineImporter::graph_input() {
  bool is_known = false;
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) {
    const std::size_t var = index_.outputs[opr_][k];
    const Extents shape = stated_shape(profile_, index_, var);
    // Callbacks have an additional empty output that orders them.
    if (shape.empty() && index_.readers[var].empty()) continue;
    if (shape.empty()) throw Error("the document states no shape of the input");
    const DType dtype = stated_dtype(var, shape).value_or(DType::F32);
    const std::string name = builder_.graph().free_name(value_name());
    value_[var] = ValueId(builder_.input(name, stated_type(var, dtype, shape)).id());
    is_known = true;
  }
  if (!is_known && index_.is_executed(opr_))
    throw Error("the document states no shape of the input");
}

void MegEngineImporter::output_callback() {
  const bool has_own_name = !opr().name.ends_with(concat("[", opr().id, "]"));
  for (std::size_t k = 0; k < input_count(); ++k) {
    outputs_.push_back(
        {opr().id, ValueId(input(k).id()), has_own_name && k == 0 ? opr().name : ""});
  }
}

void MegEngineImporter::pass_on() { forward(0, input(0)); }

void MegEngineImporter::update() {
  if (input_count() != 2)
    throw Error("an update has a destination and what is added").got(input_count(), " inputs");
  const double alpha = param().real("alpha", 1), beta = param().real("beta", 1),
               bias = param().real("bias", 0);
  Var kept = input(0), added = input(1);
  if (alpha != 1) kept = kept * alpha;
  if (beta != 1) added = added * beta;
  Var sum = kept + added;
  if (bias != 0) sum = sum + bias;
  define(0, sum);
}

}  // namespace tenon::documents::megengine

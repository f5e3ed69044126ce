#include "documents/megengine/vocabulary.h"

#include "base/text.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::documents::megengine {
namespace {

struct DTypeEntry {
  std::string_view name;
  std::optional<DType> dtype;
  int bits;
};

constexpr DTypeEntry kDTypes[] = {
    {"Float32", DType::F32, 32},
    {"Float16", DType::F16, 16},
    {"BFloat16", DType::BF16, 16},
    {"Int32", DType::I32, 32},
    {"Int16", DType::I16, 16},
    {"Int8", DType::I8, 8},
    {"Uint8", DType::U8, 8},
    {"Uint16", DType::U16, 16},
    {"Bool", DType::Bool, 8},
    {"Byte", std::nullopt, 8},
    {"QuantizedS32", std::nullopt, 32},
    {"QuantizedS16", std::nullopt, 16},
    {"QuantizedS8", std::nullopt, 8},
    {"Quantized8Asymm", std::nullopt, 8},
    {"QuantizedS4", std::nullopt, 4},
    {"Quantized4Asymm", std::nullopt, 4},
    {"QuantizedS1", std::nullopt, 1},
    // Tenon's extension for types that MegEngine lacks.
    {"Int64", DType::I64, 64},
    {"Float64", DType::F64, 64},
    {"Uint64", DType::U64, 64},
    {"Uint32", DType::U32, 32},
    {"Complex64", DType::C64, 64},
    {"Complex128", DType::C128, 128},
};

constexpr std::string_view kFlags[] = {
    "NO_SYS_MEM_ALLOC",
    "NO_ALLOC_IF_UNUSED",
    "NO_SYS_STATIC_MEM_ALLOC",
    "NO_MEM_RECLAIM",
    "RT_FORCE_DYNAMIC_MEM_ALLOC",
    "VOLATILE_CONTENT",
    "ALLOW_EMPTY_SHAPE",
    "PERSISTENT_DEVICE_VALUE",
    "DISALLOW_RT_FORCE_DYNAMIC_MEM_ALLOC",
    "DISALLOW_VAR_SANITY_CHECK",
    "MEMORY_NO_NEED",
};

constexpr std::string_view kReduceModes[] = {"SUM", "SUM_SQR", "PRODUCT", "MIN", "MAX", "MEAN"};

constexpr std::pair<std::string_view, std::string_view> kDefaultNames[] = {
    {"AddUpdate", "inplace_add"},
    {"AxisAddRemove", "axis_add_rm"},
    {"BatchNorm", "batch_norm"},
    {"BatchNormForward", "batch_norm"},
    {"BatchedMatrixMul", "batched_matrix_mul"},
    {"Broadcast", "broadcast"},
    {"Concat", "concat"},
    {"ConvBiasForward", "conv_bias"},
    {"ConvolutionForward", "conv"},
    {"Copy", "copy"},
    {"Dimshuffle", "dimshuffle"},
    {"GetVarShape", "shape_of"},
    {"Host2DeviceCopy", "h2d"},
    {"MatrixMul", "matrix_mul"},
    {"OutputCallback", "output_callback"},
    {"PoolingForward", "pooling"},
    {"Reshape", "reshape"},
    {"Softmax", "softmax"},
    {"SoftmaxForward", "softmax"},
    {"Subtensor", "subtensor"},
};

constexpr std::size_t kLongName = 64;

}  // namespace

std::optional<DType> dtype_of(std::string_view name) {
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.name == name) return entry.dtype;
  }
  return parse_dtype(name);  // Tenon's name
}

std::string dtype_name(DType dtype) {
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.dtype == dtype) return std::string(entry.name);
  }
  return to_string(dtype);
}

std::optional<int> dtype_bits(std::string_view name) {
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.name == name) return entry.bits;
  }
  if (const auto own = parse_dtype(name)) return info(*own).bits;
  if (const auto dtype = parse_dtype(name)) return info(*dtype).bits;
  return std::nullopt;
}

std::span<const std::string_view> flag_names() { return kFlags; }
std::span<const std::string_view> reduce_modes() { return kReduceModes; }

const frontends::JsonValue* Param::find(std::string_view name) const {
  if (param_ == nullptr) return nullptr;
  const auto* object = std::get_if<frontends::JsonValue::Object>(&param_->value);
  if (object == nullptr) return nullptr;
  for (const auto& [key, value] : *object) {
    if (key == name) return &value;
  }
  return nullptr;
}
const frontends::JsonValue::Array* Param::list() const {
  return param_ == nullptr ? nullptr : std::get_if<frontends::JsonValue::Array>(&param_->value);
}
std::int64_t Param::integer(std::string_view name, std::int64_t otherwise) const {
  const frontends::JsonValue* found = find(name);
  const auto* number = found ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return number ? *number : otherwise;
}
double Param::real(std::string_view name, double otherwise) const {
  const frontends::JsonValue* found = find(name);
  if (found == nullptr) return otherwise;
  if (const auto* number = std::get_if<double>(&found->value)) return *number;
  return static_cast<double>(integer(name, static_cast<std::int64_t>(otherwise)));
}
bool Param::boolean(std::string_view name, bool otherwise) const {
  const frontends::JsonValue* found = find(name);
  const auto* flag = found ? std::get_if<bool>(&found->value) : nullptr;
  return flag ? *flag : otherwise;
}
std::string Param::text(std::string_view name, std::string_view otherwise) const {
  const frontends::JsonValue* found = find(name);
  const auto* text = found ? std::get_if<std::string>(&found->value) : nullptr;
  return text ? *text : std::string(otherwise);
}

std::optional<std::string> default_name(const Operator& opr, const Param& param) {
  if (opr.type == "Elemwise") {
    if (param.has("mode")) return param.text("mode", "");
    return std::nullopt;
  }
  if (opr.type == "Reduce") {
    const std::string mode = param.text("mode", "");
    const auto found = std::find(std::begin(kReduceModes), std::end(kReduceModes), mode);
    if (found == std::end(kReduceModes)) return std::nullopt;
    return concat("reduce", found - std::begin(kReduceModes));
  }
  for (const auto& [type, name] : kDefaultNames) {
    if (type == opr.type) return std::string(name);
  }
  return std::nullopt;
}

std::string fifteen_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

std::string constant_name(const Extents& shape, std::optional<double> value) {
  if (value && count_of(shape) == 1) {
    const bool is_whole = std::fabs(*value) < 1e15 && std::floor(*value) == *value;
    return concat(
        "const<",
        is_whole ? std::to_string(static_cast<std::int64_t>(*value)) : fifteen_digits(*value), ">");
  }
  std::string name = "const{";
  for (std::size_t k = 0; k < shape.size(); ++k) name += concat(k == 0 ? "" : ",", shape[k]);
  return name + "}";
}

std::string short_name(std::string_view name) {
  const std::size_t begin = name.find('('), end = name.rfind(')');
  std::string text(name);
  if (begin != std::string_view::npos && end != std::string_view::npos && end > begin) {
    text.erase(begin, end - begin + 1);
  }
  return text;
}

std::string full_name(std::string start, std::span<const std::string* const> inputs, ItemId id) {
  if (!inputs.empty()) {
    start += '(';
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (k > 0) start += ',';
      if (start.size() >= kLongName) {
        start += "...";
        break;
      }
      start += short_name(*inputs[k]);
    }
    start += ')';
  }
  return concat(start, "[", id, "]");
}

std::optional<std::size_t> named_inputs(std::string_view type) {
  if (type == "Reshape" || type == "Subtensor" || type == "Broadcast" || type == "Reduce") return 1;
  return std::nullopt;
}

bool is_host_input(std::string_view type, std::size_t input) {
  if (type == "GetVarShape") return true;
  return input > 0 &&
         (type == "Reshape" || type == "Subtensor" || type == "Broadcast" || type == "Reduce");
}

bool is_view(std::string_view type) {
  return type == "Reshape" || type == "AxisAddRemove" || type == "Dimshuffle" ||
         type == "Subtensor" || type == "Broadcast" || type == "Identity";
}

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}
std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

std::int64_t count_of(const Extents& shape) {
  if (shape.empty()) return 0;
  std::int64_t count = 1;
  // A zero extent wins over an overflowing product.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (std::int64_t extent : shape) count = saturating_product(count, extent);
  return count;
}

Extents contiguous_strides(const Extents& shape) {
  Extents strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0;) {
    strides[k] = stride;
    stride = saturating_product(stride, shape[k]);
  }
  return strides;
}

std::string to_text(const Extents& extents) {
  std::string text = "[";
  for (std::size_t k = 0; k < extents.size(); ++k) text += concat(k == 0 ? "" : ", ", extents[k]);
  return text + "]";
}

std::string tenon_type_of(const Graph& graph, NodeId node) {
  constexpr std::size_t kMembers = 4;
  std::vector<std::string> names;
  std::size_t left_out = 0;
  if (is_fused_group(graph, node)) {
    const Graph& body = graph.node(node).bodies.front();
    for (const NodeId member : body.nodes_in_order()) {
      const auto& results = body.node(member).results;
      if (!results.empty() && results.front() && body.constant_of(results.front()) != nullptr)
        continue;
      if (names.size() < kMembers) {
        names.emplace_back(body.op_name(member));
      } else {
        ++left_out;
      }
    }
  }
  if (names.size() < 2) return std::string(graph.op_name(node));
  return join(names, "+") + (left_out > 0 ? concat("+", left_out) : "");
}

std::int64_t tenon_computation_of(const Graph& graph, NodeId node) {
  const std::int64_t flops = footprint_of(graph, node).flops.value().value_or(0);
  if (flops > 0) return flops;
  for (const ValueId result : graph.node(node).results) {
    if (!result || !graph.value(result).type.is_tensor()) continue;
    return element_count(graph.value(result).type.tensor()).value().value_or(0);
  }
  return 0;
}

}  // namespace tenon::documents::megengine

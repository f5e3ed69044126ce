#include "documents/relay/ast.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenon::documents::relay {
namespace {

// Prints six digits, like the reference's streams; more if six would read back as another number.
std::string real_text(double value, bool is_single) {
  char digits[64];
  for (const int precision : {6, 9, 17}) {
    std::snprintf(digits, sizeof digits, "%.*g", precision, value);
    const double again = std::strtod(digits, nullptr);
    const bool is_same =
        is_single ? static_cast<float>(again) == static_cast<float>(value) : again == value;
    if (is_same || std::isnan(value)) break;
  }
  return digits;
}

std::string suffix_of(const std::string& dtype) {
  if (dtype == "float64") return "f64";
  if (dtype == "float16") return "f16";
  if (dtype == "int64") return "i64";
  if (dtype == "int16") return "i16";
  return dtype == "float32" ? "f" : "";
}

std::string value_text(const AttributeValue& value, bool is_attribute) {
  return std::visit(
      [is_attribute](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, NoneLiteral>) {
          return "None";
        } else if constexpr (std::is_same_v<T, bool>) {
          return held ? "True" : "False";
        } else if constexpr (std::is_same_v<T, IntegerLiteral>) {
          return concat(held.value, is_attribute ? "" : suffix_of(held.dtype));
        } else if constexpr (std::is_same_v<T, RealLiteral>) {
          const bool is_single = !is_attribute && held.dtype != "float64";
          return real_text(held.value, is_single) + (is_attribute ? "f" : suffix_of(held.dtype));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return quote(held);
        } else if constexpr (std::is_same_v<T, AttributeList>) {
          std::vector<std::string> items;
          for (const AttributeValue& item : held) items.push_back(value_text(item, is_attribute));
          return "[" + join(items, ", ") + "]";
        } else if constexpr (std::is_same_v<T, MetaReference>) {
          return concat("meta[", held.key, "][", held.index, "]");
        } else {
          return held.text;
        }
      },
      value.value);
}

std::string list_text(const std::vector<RelayType>& types, std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += (k > 0 ? ", " : "") + to_string(types[k]);
  return text;
}

}  // namespace

std::string to_string(const AttributeValue& value) { return value_text(value, false); }
std::string attribute_text(const AttributeValue& value) { return value_text(value, true); }

RelayType tensor_type(std::vector<std::int64_t> dims, std::string dtype) {
  RelayType type;
  type.dims = std::move(dims);
  type.dtype = std::move(dtype);
  return type;
}

RelayType RelayType::tuple(std::vector<RelayType> parts) {
  RelayType type;
  type.kind = Kind::Tuple;
  type.parts = std::move(parts);
  return type;
}
RelayType RelayType::of_results(std::vector<RelayType> parts) {
  return parts.size() == 1 ? std::move(parts.front()) : tuple(std::move(parts));
}

RelayExpr RelayExpr::of(Kind kind, BlockId block, std::string_view name, std::size_t position) {
  RelayExpr expr;
  expr.kind = kind;
  expr.name = name;
  expr.block = block;
  expr.position = position;
  return expr;
}

std::string to_string(const RelayType& type) {
  switch (type.kind) {
    case RelayType::Kind::Tensor: {
      if (type.dims.empty()) return type.dtype;
      std::string text = "Tensor[(";
      for (std::size_t k = 0; k < type.dims.size(); ++k) {
        if (k > 0) text += ", ";
        text += type.dims[k] == RelayType::kAnyExtent ? "?" : std::to_string(type.dims[k]);
      }
      return text + "), " + type.dtype + "]";
    }
    case RelayType::Kind::Tuple:
      return concat("(", list_text(type.parts, type.parts.size()),
                    type.parts.size() == 1 ? "," : "", ")");
    case RelayType::Kind::Function:
      return concat("fn (", list_text(type.parts, type.parts.size() - 1), ") -> ",
                    to_string(type.parts.back()));
    case RelayType::Kind::Incomplete:
      return "_";
    case RelayType::Kind::Named:
      break;
  }
  if (type.parts.empty()) return type.name;
  return concat(type.name, "[", list_text(type.parts, type.parts.size()), "]");
}

const GlobalFunction* RelayModule::entry() const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [](const GlobalFunction& f) { return f.name == "main"; });
  if (found != functions.end()) return &*found;
  return functions.size() == 1 ? &functions.front() : nullptr;
}

std::vector<ExprId> children_of(const RelayExpr& expr) {
  std::vector<ExprId> below;
  switch (expr.kind) {
    case RelayExpr::Kind::Call:
    case RelayExpr::Kind::Tuple:
    case RelayExpr::Kind::Projection:
      return expr.parts;
    case RelayExpr::Kind::If:
      below.push_back(expr.parts[0]);
      break;
    case RelayExpr::Kind::Let:
      below.push_back(expr.parts[1]);
      break;
    default:
      break;
  }
  below.insert(below.end(), expr.captures.begin(), expr.captures.end());
  return below;
}

bool has_line(RelayExpr::Kind kind) {
  switch (kind) {
    case RelayExpr::Kind::Variable:
    case RelayExpr::Kind::Constant:
    case RelayExpr::Kind::Scalar:
    case RelayExpr::Kind::Operator:
    case RelayExpr::Kind::Global:
      return false;
    default:
      return true;
  }
}

}  // namespace tenon::documents::relay

// Export of symbolic extents and arithmetic on them as ONNX nodes over shapes of values.
#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/exporter.h"
#include "ir/text_cursor.h"

#include <charconv>
#include <functional>

namespace tenon::frontends::onnx {
namespace {

/// Recursive-descent parser of a dim's text form that emits nodes and returns the name of an i64[1]
/// value.
class ExtentWriter {
 public:
  ExtentWriter(OnnxExporter& exporter, const std::string& text,
               const std::function<std::string(const std::string&)>& symbol_value)
      : exporter_(exporter), cursor_{text, "extent"}, symbol_value_(symbol_value) {}

  std::string sum() {
    std::string total = cursor_.accept('-') ? emit("Neg", {product()}) : product();
    while (true) {
      if (cursor_.accept('+')) {
        total = emit("Add", {total, product()});
      } else if (cursor_.accept('-')) {
        total = emit("Sub", {total, product()});
      } else {
        return total;
      }
    }
  }

 private:
  std::string product() {
    std::string value = primary();
    while (cursor_.accept('*')) value = emit("Mul", {value, primary()});
    return value;
  }

  std::string primary() {
    const char next = cursor_.peek();
    if (cursor_.accept('-')) return emit("Neg", {primary()});
    if (cursor_.accept('(')) {
      const std::string value = sum();
      cursor_.expect(')');
      return value;
    }
    if (next >= '0' && next <= '9') return number();
    if (next == '"') return symbol_value_(quoted_name());
    const std::string name(cursor_.accept_identifier());
    return cursor_.accept('(') ? call(name) : symbol_value_(name);
  }

  std::string call(const std::string& name) {
    if (name == "floor") {
      const std::string numerator = cursor_.accept('-') ? emit("Neg", {product()}) : product();
      cursor_.expect('/');
      const std::string denominator = primary();
      cursor_.expect(')');
      // Div truncates towards zero; subtracting the result of Mod makes the division exact.
      const std::string rest = emit("Mod", {numerator, denominator});
      return emit("Div", {emit("Sub", {numerator, rest}), denominator});
    }
    const char* op_type = name == "mod" ? "Mod" : name == "min" ? "Min" : "Max";
    std::string value = sum(), least = value;
    while (cursor_.accept(',')) {
      const std::string next = sum();
      value = emit(op_type, {value, next});
      if (name == "broadcast") least = emit("Min", {least, next});
    }
    cursor_.expect(')');
    if (name != "broadcast") return value;
    // The maximum, or 0 if an operand is 0.
    const std::string one =
        exporter_.add_constant(Tensor::of_integers(std::vector<std::int64_t>{1}), "extent");
    return emit("Mul", {value, emit("Min", {least, one})});
  }

  std::string number() {
    const std::string_view rest = cursor_.text.substr(cursor_.position);
    std::int64_t value = 0;
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    cursor_.position += static_cast<std::size_t>(end.ptr - rest.data());
    return exporter_.add_constant(Tensor::of_integers(std::vector{value}), "extent");
  }

  std::string quoted_name() {
    const std::size_t begin = cursor_.position;
    std::size_t end = begin + 1;
    while (cursor_.text[end] != '"') end += cursor_.text[end] == '\\' ? 2 : 1;
    cursor_.position = end + 1;
    return unquote(cursor_.text.substr(begin, end + 1 - begin)).value();
  }

  std::string emit(const char* op_type, const std::vector<std::string>& inputs) {
    std::string name = exporter_.fresh("extent");
    exporter_.add_node(op_type, inputs, {name}, {}, "");
    return name;
  }

  OnnxExporter& exporter_;
  TextCursor cursor_;
  const std::function<std::string(const std::string&)>& symbol_value_;
};

}  // namespace

std::string OnnxExporter::extent_value(const Dim& extent) {
  if (extent.is_constant()) {
    return add_constant(Tensor::of_integers(std::vector{extent.constant()}), "extent");
  }
  const std::function<std::string(const std::string&)> symbol = [&](const std::string& name) {
    return symbol_value(name);
  };
  return ExtentWriter(*this, to_string(extent), symbol).sum();
}

std::string OnnxExporter::symbol_value(const std::string& symbol) {
  for (ExportFrame* frame = frame_; frame; frame = frame->outer) {
    if (const auto known = frame->extents.find(symbol); known != frame->extents.end()) {
      return known->second;
    }
  }
  for (ExportFrame* frame = frame_; frame; frame = frame->outer) {
    for (std::size_t k = 0; k < frame->names.size(); ++k) {
      const Value& value = frame->graph->value(ValueId(k));
      if (!value.type.is_tensor() || (value.producer && !frame->is_local[k])) continue;
      const Dims& dims = value.type.tensor().dims;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        if (dims[axis].symbol_name() != symbol) continue;
        const std::string shape = fresh(concat(frame->names[k], "_shape"));
        const std::string extent = fresh(symbol);
        const auto position = static_cast<std::int64_t>(axis);
        add_node("Shape", {frame->names[k]}, {shape}, {}, "");
        add_node("Gather",
                 {shape, add_constant(Tensor::of_integers(std::vector{position}), "axis")},
                 {extent}, {{"axis", std::int64_t{0}}}, "");
        frame_->extents.emplace(symbol, extent);
        return extent;
      }
    }
  }
  throw Error(concat("no value has the extent '", symbol, "'"), ErrorKind::Unsupported);
}

}  // namespace tenon::frontends::onnx

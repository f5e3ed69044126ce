#include "documents/aitemplate/python_value.h"

#include "base/error.h"
#include "documents/python_text.h"

#include <cmath>

namespace tenon::documents::aitemplate {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_escaped(std::string& text, unsigned char c) {
  text += "\\x";
  text += kHexDigits[c >> 4];
  text += kHexDigits[c & 15];
}

}  // namespace

PythonValue::PythonValue(const PythonValue&) = default;
PythonValue::PythonValue(PythonValue&&) noexcept = default;
PythonValue& PythonValue::operator=(const PythonValue&) = default;
PythonValue& PythonValue::operator=(PythonValue&&) noexcept = default;
PythonValue::~PythonValue() = default;

PythonValue PythonValue::boolean(bool value) {
  PythonValue made = of(Kind::Bool);
  made.integer = value ? 1 : 0;
  return made;
}
PythonValue PythonValue::number(std::int64_t value) {
  PythonValue made = of(Kind::Integer);
  made.integer = value;
  return made;
}
PythonValue PythonValue::real_number(double value) {
  PythonValue made = of(Kind::Real);
  made.real = value;
  return made;
}
PythonValue PythonValue::string(std::string value) {
  PythonValue made = of(Kind::Text);
  made.text = std::move(value);
  return made;
}
PythonValue PythonValue::expression(std::string value) {
  PythonValue made = of(Kind::Expression);
  made.text = std::move(value);
  return made;
}
PythonValue PythonValue::opaque(std::string value) {
  PythonValue made = of(Kind::Opaque);
  made.text = std::move(value);
  return made;
}
PythonValue PythonValue::of(Kind kind, std::vector<PythonValue> items) {
  PythonValue made;
  made.kind = kind;
  made.items = std::move(items);
  return made;
}
PythonValue PythonValue::list(const std::vector<std::string>& texts) {
  PythonValue made = of(Kind::List);
  for (const std::string& each : texts) made.items.push_back(string(each));
  return made;
}
PythonValue PythonValue::list(const std::vector<std::int64_t>& numbers) {
  PythonValue made = of(Kind::List);
  for (const std::int64_t each : numbers) made.items.push_back(number(each));
  return made;
}

bool PythonValue::has_keys() const {
  return kind == Kind::Dict || kind == Kind::OrderedDict || kind == Kind::Object ||
         kind == Kind::JaggedDim || kind == Kind::Call;
}

void PythonValue::set(std::string_view key, PythonValue value) {
  TENON_ASSERT(has_keys(), "members belong to dicts, objects and calls");
  keys.push_back(string(std::string(key)));
  items.push_back(std::move(value));
}

const PythonValue* PythonValue::find(std::string_view key) const {
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (keys[k].is(Kind::Text) && keys[k].text == key) return &items[k];
  }
  return nullptr;
}

std::string text_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  std::string quoted(1, mark);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      append_escaped(quoted, byte);
    } else {
      quoted += c;
    }
  }
  return quoted + mark;
}

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return python_real(value);
}

}  // namespace tenon::documents::aitemplate

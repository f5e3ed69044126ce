#include "frontends/aitemplate/python_value.h"

#include "base/error.h"

#include <array>
#include <charconv>
#include <cmath>

namespace tenon::aitemplate {
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

// The shortest digits that read back the same, with an exponent below 1e-4 and from 1e16 on.
std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = shortest.find('e');
  std::string digits;
  for (const char c : shortest.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  const std::string sign = shortest.front() == '-' ? "-" : "";
  int exponent = 0;
  std::string_view power = shortest.substr(mark + 1);
  if (power.front() == '+') power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string text = sign + digits.substr(0, 1);
    if (count > 1) text += "." + digits.substr(1);
    const int size = std::abs(exponent);
    return text + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  if (count <= exponent + 1) {
    return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  }
  const auto whole = static_cast<std::size_t>(exponent + 1);
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace tenon::aitemplate

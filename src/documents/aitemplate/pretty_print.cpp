#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/python_value.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>

// Python's pprint with an indent of two: a value that fits on the rest of its line is printed by
// `repr`, any other is broken up, one item per line. An object prints itself from column 0 and is
// inserted unchanged, so its lines are indented too little.
namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 2;

// Counts characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}
bool ends_line(char c) { return (c >= '\n' && c <= '\r') || (c >= '\x1c' && c <= '\x1e'); }

// Splits a text into lines with their line ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (!ends_line(text[k])) continue;
    if (text[k] == '\r' && k + 1 < text.size() && text[k + 1] == '\n') ++k;
    lines.push_back(text.substr(start, k + 1 - start));
    start = k + 1;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

// Splits a line into words with their trailing white space.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t k = 0;
  while (k < line.size()) {
    const std::size_t start = k;
    while (k < line.size() && !is_space(line[k])) ++k;
    while (k < line.size() && is_space(line[k])) ++k;
    words.push_back(line.substr(start, k - start));
  }
  return words;
}

class PrettyPrinter {
 public:
  explicit PrettyPrinter(const PythonStyle& style) : style_(style) {}

  std::string print(const PythonValue& value) {
    std::string out;
    format(value, out, 0, 0, 0);
    return out;
  }

 private:
  static std::vector<std::size_t> order_of(const PythonValue& value);
  void append_repr(const PythonValue& value, std::string& out);
  void append_sequence(const PythonValue& value, std::string& out, std::string_view open,
                       std::string_view close);
  const std::string& object_text(const PythonValue& object);

  void format(const PythonValue& value, std::string& out, std::size_t indent, std::size_t allowance,
              int level);
  void format_wide(const PythonValue& value, std::string& out, std::size_t indent,
                   std::size_t allowance, int level);
  void format_members(const PythonValue& value, std::string& out, std::size_t indent,
                      std::size_t allowance, int level);
  void format_items(const std::vector<PythonValue>& items, std::string& out, std::size_t indent,
                    std::size_t allowance, int level);
  void format_call(const PythonValue& value, std::string& out, std::size_t indent,
                   std::size_t allowance, int level);
  void format_text(std::string_view text, std::string& out, std::size_t indent,
                   std::size_t allowance, int level);

  PythonStyle style_;
  // Caches the texts of objects, which are needed to test whether the container fits, and again to
  // print it.
  std::unordered_map<const PythonValue*, std::string> object_texts_;
  std::vector<std::unique_ptr<PythonValue>> pairs_;
};

// Sorts by key; the keys of one object are texts, or, in a dict of numbers, numbers.
std::vector<std::size_t> PrettyPrinter::order_of(const PythonValue& value) {
  std::vector<std::size_t> order(value.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (value.is(Kind::OrderedDict) || value.is(Kind::JaggedDim)) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const PythonValue &one = value.keys[a], &other = value.keys[b];
    if (one.kind != other.kind) return one.kind < other.kind;
    return one.integer != other.integer ? one.integer < other.integer : one.text < other.text;
  });
  return order;
}

const std::string& PrettyPrinter::object_text(const PythonValue& object) {
  const auto found = object_texts_.find(&object);
  if (found != object_texts_.end()) return found->second;
  std::string text;
  if (object.is(Kind::JaggedDim)) {
    append_sequence(object, text, "{", "}");
  } else {
    format(object, text, 0, 0, 0);
  }
  return object_texts_.emplace(&object, std::move(text)).first->second;
}

void PrettyPrinter::append_sequence(const PythonValue& value, std::string& out,
                                    std::string_view open, std::string_view close) {
  out += open;
  std::string_view separator;
  if (value.has_keys()) {
    for (const std::size_t k : order_of(value)) {
      out += separator;
      append_repr(value.keys[k], out);
      out += ": ";
      append_repr(value.items[k], out);
      separator = ", ";
    }
  } else {
    for (const PythonValue& item : value.items) {
      out += separator;
      append_repr(item, out);
      separator = ", ";
    }
  }
  out += close;
}

void PrettyPrinter::append_repr(const PythonValue& value, std::string& out) {
  switch (value.kind) {
    case Kind::None:
      out += "None";
      break;
    case Kind::Bool:
      out += value.integer != 0 ? "True" : "False";
      break;
    case Kind::Integer:
      out += std::to_string(value.integer);
      break;
    case Kind::Real:
      out += real_repr(value.real);
      break;
    case Kind::Text:
      out += text_repr(value.text);
      break;
    case Kind::Expression:
    case Kind::Opaque:
      out += value.text;
      break;
    case Kind::List:
      append_sequence(value, out, "[", "]");
      break;
    case Kind::Tuple:
      append_sequence(value, out, "(", value.items.size() == 1 ? ",)" : ")");
      break;
    case Kind::Set:
      value.items.empty() ? void(out += "set()") : append_sequence(value, out, "{", "}");
      break;
    case Kind::FrozenSet:
      value.items.empty() ? void(out += "frozenset()")
                          : append_sequence(value, out, "frozenset({", "})");
      break;
    case Kind::Dict:
      append_sequence(value, out, "{", "}");
      break;
    case Kind::OrderedDict:
      if (value.items.empty()) {
        out += "OrderedDict()";
      } else if (style_.braces_in_ordered) {
        append_sequence(value, out, "OrderedDict({", "})");
      } else {
        out += "OrderedDict([";
        for (std::size_t k = 0; k < value.items.size(); ++k) {
          out += k == 0 ? "(" : ", (";
          append_repr(value.keys[k], out);
          out += ", ";
          append_repr(value.items[k], out);
          out += ")";
        }
        out += "])";
      }
      break;
    case Kind::Object:
    case Kind::JaggedDim:
      out += object_text(value);
      break;
    case Kind::Call:
      out += value.text + "(";
      for (std::size_t k = 0; k < value.items.size(); ++k) {
        out += (k == 0 ? "" : ", ") + value.keys[k].text + "=";
        append_repr(value.items[k], out);
      }
      out += ")";
      break;
  }
}

void PrettyPrinter::format(const PythonValue& value, std::string& out, std::size_t indent,
                           std::size_t allowance, int level) {
  // Level 0 is an object that prints itself; deeper, it is a text.
  const bool is_whole = level == 0 && value.is(Kind::Object);
  std::string text;
  if (is_whole) {
    append_sequence(value, text, "{", "}");
  } else {
    append_repr(value, text);
  }
  const bool fits = length_of(text) + indent + allowance <= kWidth;
  if (fits || (!is_whole && (value.is(Kind::Object) || value.is(Kind::JaggedDim)))) {
    out += text;
  } else {
    format_wide(value, out, indent, allowance, level + 1);
  }
}

void PrettyPrinter::format_wide(const PythonValue& value, std::string& out, std::size_t indent,
                                std::size_t allowance, int level) {
  const bool is_named = value.is(Kind::OrderedDict) || value.is(Kind::Set) ||
                        value.is(Kind::FrozenSet) || value.is(Kind::Text);
  if (is_named && value.items.empty() && value.text.empty()) {
    append_repr(value, out);  // indivisible
    return;
  }
  switch (value.kind) {
    case Kind::Dict:
    case Kind::Object:
      out += "{ ";
      format_members(value, out, indent, allowance + 1, level);
      out += "}";
      return;
    case Kind::OrderedDict: {
      const std::string_view name = "OrderedDict(";
      // Kept alive, since texts of objects are cached by address.
      PythonValue& pairs = *pairs_.emplace_back(std::make_unique<PythonValue>());
      pairs.kind = Kind::List;
      for (std::size_t k = 0; k < value.items.size(); ++k) {
        pairs.items.push_back(PythonValue::of(Kind::Tuple, {value.keys[k], value.items[k]}));
      }
      out += name;
      format(pairs, out, indent + name.size(), allowance + 1, level);
      out += ")";
      return;
    }
    case Kind::List:
      out += "[";
      format_items(value.items, out, indent, allowance + 1, level);
      out += "]";
      return;
    case Kind::Tuple: {
      const std::string_view end = value.items.size() == 1 ? ",)" : ")";
      out += "(";
      format_items(value.items, out, indent, allowance + end.size(), level);
      out += end;
      return;
    }
    case Kind::Set:
      out += "{";
      format_items(value.items, out, indent, allowance + 1, level);
      out += "}";
      return;
    case Kind::FrozenSet: {
      const std::string_view name = "frozenset(";
      out += concat(name, "{");
      format_items(value.items, out, indent + name.size(), allowance + 2, level);
      out += "})";
      return;
    }
    case Kind::Text:
      format_text(value.text, out, indent, allowance, level);
      return;
    case Kind::Call:
      if (style_.wraps_calls) {
        format_call(value, out, indent, allowance, level);
        return;
      }
      break;
    default:
      break;
  }
  append_repr(value, out);
}

void PrettyPrinter::format_members(const PythonValue& value, std::string& out, std::size_t indent,
                                   std::size_t allowance, int level) {
  indent += kIndent;
  const std::vector<std::size_t> order = order_of(value);
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::string key;
    append_repr(value.keys[order[k]], key);
    out += key + ": ";
    const bool is_last = k + 1 == order.size();
    format(value.items[order[k]], out, indent + length_of(key) + 2, is_last ? allowance : 1, level);
    if (!is_last) out += ",\n" + std::string(indent, ' ');
  }
}

void PrettyPrinter::format_items(const std::vector<PythonValue>& items, std::string& out,
                                 std::size_t indent, std::size_t allowance, int level) {
  indent += kIndent;
  out += std::string(kIndent - 1, ' ');
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k > 0) out += ",\n" + std::string(indent, ' ');
    format(items[k], out, indent, k + 1 == items.size() ? allowance : 1, level);
  }
}

void PrettyPrinter::format_call(const PythonValue& value, std::string& out, std::size_t indent,
                                std::size_t allowance, int level) {
  indent += length_of(value.text) + 1;
  out += value.text + "(";
  for (std::size_t k = 0; k < value.items.size(); ++k) {
    const std::string& key = value.keys[k].text;
    const bool is_last = k + 1 == value.items.size();
    if (k > 0) out += ",\n" + std::string(indent, ' ');
    out += key + "=";
    format(value.items[k], out, indent + length_of(key) + 1, is_last ? allowance : 1, level);
  }
  out += ")";
}

// Breaks a text after lines and, if necessary, after words.
void PrettyPrinter::format_text(std::string_view text, std::string& out, std::size_t indent,
                                std::size_t allowance, int level) {
  if (level == 1) {
    ++indent;
    ++allowance;
  }
  const auto fits = [&](std::string_view part, bool is_last) {
    return length_of(text_repr(part)) + indent + (is_last ? allowance : 0) <= kWidth;
  };
  std::vector<std::string> chunks;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_last_line = i + 1 == lines.size();
    if (fits(lines[i], is_last_line)) {
      chunks.push_back(text_repr(lines[i]));
      continue;
    }
    const std::vector<std::string_view> words = words_of(lines[i]);
    std::string current;
    for (std::size_t j = 0; j < words.size(); ++j) {
      std::string candidate = current + std::string(words[j]);
      if (fits(candidate, is_last_line && j + 1 == words.size())) {
        current = std::move(candidate);
      } else {
        if (!current.empty()) chunks.push_back(text_repr(current));
        current = std::string(words[j]);
      }
    }
    if (!current.empty()) chunks.push_back(text_repr(current));
  }
  const bool has_brackets = level == 1 && chunks.size() > 1;
  if (has_brackets) out += "(";
  out += join(chunks, "\n" + std::string(indent, ' '));
  if (has_brackets) out += ")";
}

}  // namespace

std::string pretty_print(const PythonValue& value, const PythonStyle& style) {
  return PrettyPrinter(style).print(value);
}

}  // namespace tenon::documents::aitemplate

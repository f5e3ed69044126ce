#include "frontends/json.h"

#include "base/text.h"
#include "base/text_place.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_set>

namespace tenon::frontends {
namespace {

constexpr std::size_t kMaxDepth = 100;

// SAX handler that builds the tree.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  JsonValue take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error("the number is out of range").at(place()).got(value);
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& text) override {
    // The library parses an integer with too many digits as a real number.
    if (text.find_first_of(".eE") == std::string::npos) {
      throw Error("the number is out of range").at(place()).got(text);
    }
    return add(value);
  }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open<JsonValue::Object>(); }
  bool key(std::string& name) override {
    if (!seen_.back().insert(name).second) {
      throw Error(concat("the member '", name, "' comes twice")).at(place());
    }
    std::get<JsonValue::Object>(open_.back()->value).emplace_back().first = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open<JsonValue::Array>(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    const std::size_t at = position == 0 ? 0 : std::min(position - 1, text_.size());
    Error problem("this is not valid JSON");
    problem.at(text_place(source_, text_, at));
    if (error.id == 406) throw problem.got("a number out of range, ", token);
    if (at == text_.size())
      throw problem.got("the end of the text").hint("the file may be cut short");
    throw problem.got(quote(token.substr(0, 40)));
  }

 private:
  // Returns the path of the next value.
  std::string place() const {
    std::string path = concat(source_, ", $");
    for (const JsonValue* container : open_) {
      if (const auto* object = std::get_if<JsonValue::Object>(&container->value)) {
        if (!object->empty()) path += "." + object->back().first;
      } else {
        path += concat("[", std::get<JsonValue::Array>(container->value).size(), "]");
      }
    }
    return path;
  }

  // Returns the destination of the next value.
  JsonValue& next() {
    if (open_.empty()) return root_;
    if (auto* object = std::get_if<JsonValue::Object>(&open_.back()->value))
      return object->back().second;
    return std::get<JsonValue::Array>(open_.back()->value).emplace_back();
  }

  template <class T>
  bool add(T value) {
    next().value.emplace<T>(std::move(value));
    return true;
  }
  // Only the innermost container grows, so pointers to the open ones stay valid.
  template <class T>
  bool open() {
    if (open_.size() >= kMaxDepth) {
      throw Error("the text is nested too deeply")
          .at(place())
          .expected("at most ", kMaxDepth, " levels");
    }
    JsonValue& container = next();
    container.value.emplace<T>();
    open_.push_back(&container);
    seen_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    seen_.pop_back();
    return true;
  }

  std::string_view text_, source_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::vector<std::unordered_set<std::string>> seen_;
};

}  // namespace

JsonValue::Array JsonValue::integers(const std::vector<std::int64_t>& list) {
  return {list.begin(), list.end()};
}

JsonValue parse_json(std::string_view text, std::string_view source) {
  TreeBuilder builder(text, source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

void print_json(std::string& to, const JsonValue& json, const JsonStyle& style) {
  struct Printer {
    std::string& to;
    const JsonStyle& style;

    void operator()(std::nullptr_t) const { to += "null"; }
    void operator()(bool flag) const { to += flag ? "true" : "false"; }
    void operator()(std::int64_t number) const { to += std::to_string(number); }
    void operator()(double number) const { style.append_real(to, number); }
    void operator()(const std::string& text) const { style.append_text(to, text); }
    void operator()(const JsonValue::Array& list) const {
      if (list.empty()) to += '[';
      for (const JsonValue& element : list) {
        to += &element == &list.front() ? style.open_array : ", ";
        print_json(to, element, style);
      }
      to += ']';
    }
    void operator()(const JsonValue::Object& object) const {
      to += style.open_object;
      for (const JsonValue::Member& member : object) {
        if (&member != &object.front()) to += ", ";
        style.append_text(to, member.first);
        to += ": ";
        print_json(to, member.second, style);
      }
      to += '}';
    }
  };
  std::visit(Printer{to, style}, json.value);
}

void append_json_code(std::string& to, std::uint32_t code) {
  static constexpr char kDigits[] = "0123456789abcdef";
  to += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) to += kDigits[(code >> shift) & 0xf];
}

void append_json_text(std::string& to, std::string_view text, std::string_view letters) {
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t", kLetters = "\"\\/bfnrt";
  to += '"';
  for (const char c : text) {
    const std::size_t special = kMeanings.find(c);
    if (special != std::string_view::npos && letters.find(kLetters[special]) != letters.npos) {
      to += {'\\', kLetters[special]};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_json_code(to, static_cast<unsigned char>(c));
    } else {
      to += c;
    }
  }
  to += '"';
}

Error JsonReader::error(std::string summary) const {
  return Error(std::move(summary)).at(source_, ", ", path_);
}

template <class T>
const T& JsonReader::get(std::string_view expected) const {
  if (const T* found = std::get_if<T>(&json_->value)) return *found;
  static constexpr std::string_view kKinds[] = {"null",   "true or false", "an integer", "a number",
                                                "a text", "an array",      "an object"};
  throw error("a value is of the wrong kind").expected(expected).got(kKinds[json_->value.index()]);
}

bool JsonReader::boolean() const { return get<bool>("true or false"); }

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  const std::int64_t value = get<std::int64_t>("an integer");
  if (value < low || value > high) {
    Error problem = error("the number is out of range");
    problem.got(value);
    if (high == std::numeric_limits<std::int64_t>::max()) throw problem.expected(low, " or more");
    throw problem.expected(low, " to ", high);
  }
  return value;
}

double JsonReader::real() const {
  if (is_integer()) return static_cast<double>(std::get<std::int64_t>(json_->value));
  return get<double>("a number");
}

const std::string& JsonReader::text() const { return get<std::string>("a text"); }

std::vector<std::int64_t> JsonReader::integers() const {
  std::vector<std::int64_t> list;
  for (const JsonReader& element : elements()) list.push_back(element.integer());
  return list;
}

std::optional<JsonReader> JsonReader::find(std::string_view name) const {
  for (const auto& [key, value] : get<JsonValue::Object>("an object")) {
    if (key == name) return JsonReader(value, source_, concat(path_, ".", name));
  }
  return std::nullopt;
}

JsonReader JsonReader::member(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  throw error("a member is missing").expected("'", name, "'");
}

std::vector<std::pair<std::string_view, JsonReader>> JsonReader::members() const {
  std::vector<std::pair<std::string_view, JsonReader>> list;
  for (const auto& [name, value] : get<JsonValue::Object>("an object")) {
    list.emplace_back(name, JsonReader(value, source_, concat(path_, ".", name)));
  }
  return list;
}

std::vector<JsonReader> JsonReader::elements() const {
  std::vector<JsonReader> list;
  for (const JsonValue& value : get<JsonValue::Array>("an array")) {
    list.push_back(JsonReader(value, source_, concat(path_, "[", list.size(), "]")));
  }
  return list;
}

void JsonReader::allow_only(std::initializer_list<std::string_view> names) const {
  for (const auto& [key, value] : get<JsonValue::Object>("an object")) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::vector<std::string> known(names.begin(), names.end());
    throw error(concat("there is no member '", key, "' here")).hint(suggest_name(key, known));
  }
}

}  // namespace tenon::frontends

#include "documents/aitemplate/read_dump.h"

#include "base/text.h"
#include "documents/aitemplate/python_parser.h"
#include "documents/aitemplate/schema.h"
#include "ir/dim.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::string_view name_of(const DimRow&) { return "dim"; }
constexpr std::string_view name_of(const TensorRow&) { return "tensor"; }
constexpr std::string_view name_of(const AccessorRow&) { return "tensor accessor"; }
constexpr std::string_view name_of(const OperatorRow&) { return "operator"; }

std::vector<std::string>* absent_of(auto& row) { return &row.absent; }
std::vector<std::string>* absent_of(OperatorRow&) { return nullptr; }

// Reads the attributes of one object into fields; unknown attributes are kept in `further`.
class ObjectReader {
 public:
  template <class Row>
  static Row read_row(const PythonValue& object, const PythonParser& parser) {
    Row row;
    ObjectReader reader(object, parser, name_of(row), absent_of(row));
    fields(reader, row);
    row.further = reader.further();
    reader.verify(row);
    return row;
  }

  void operator()(std::string_view key, auto& field) {
    const PythonValue* found = find(key);
    if (found == nullptr)
      throw parser_.error(concat("the ", what_, " has no '", key, "'"), object_.offset);
    read(*found, field);
  }
  void noted(std::string_view key, auto&& field) {
    const PythonValue* found = find(key);
    if (found == nullptr) {
      absent_->emplace_back(key);
    } else {
      read(*found, field);
    }
  }
  template <class T>
  void maybe(std::string_view key, std::optional<T>& field) {
    if (const PythonValue* found = find(key)) read(*found, field.emplace());
  }
  void maybe(std::string_view key, std::vector<OperatorRow>& field) {
    const PythonValue* found = find(key);
    if (found == nullptr) return;
    read(*found, field);
    if (field.empty()) throw error(*found, "at least one inner operator");
  }

 private:
  ObjectReader(const PythonValue& object, const PythonParser& parser, std::string_view what,
               std::vector<std::string>* absent)
      : object_(object), parser_(parser), what_(what), absent_(absent) {
    if (!object.has_keys())
      throw parser_.error(concat("a ", what, " should stand here"), object.offset);
    for (const PythonValue& key : object.keys) {
      if (!key.is(Kind::Text))
        throw parser_.error(concat("attributes of a ", what, " have names"), key.offset);
    }
  }

  const PythonValue* find(std::string_view key) {
    used_.insert(key);
    return object_.find(key);
  }
  std::vector<Member> further() const {
    std::vector<Member> members;
    for (std::size_t k = 0; k < object_.keys.size(); ++k) {
      if (!used_.contains(object_.keys[k].text))
        members.emplace_back(object_.keys[k].text, object_.items[k]);
    }
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return a.first < b.first; });
    return members;
  }
  void verify(const auto&) const {}
  void verify(const DimRow& row) const {
    if (row.values.empty()) throw error(*object_.find("values"), "at least one value");
  }

  Error error(const PythonValue& value, std::string_view expected) const {
    return parser_.error(concat("the ", what_, " should have ", expected, " here"), value.offset);
  }
  const PythonValue& of_kind(const PythonValue& value, Kind kind, std::string_view expected) const {
    if (!value.is(kind)) throw error(value, expected);
    return value;
  }

  void read(const PythonValue& value, bool& field) const {
    field = of_kind(value, Kind::Bool, "True or False").integer != 0;
  }
  void read(const PythonValue& value, std::int64_t& field) const {
    field = of_kind(value, Kind::Integer, "a whole number").integer;
    if (field < 0) throw error(value, "a number that is not negative");
    if (field > kMaxExtent) throw error(value, "a number of at most 2^56");
  }
  void read(const PythonValue& value, std::string& field) const {
    field = of_kind(value, Kind::Text, "a text").text;
  }
  static void read(const PythonValue& value, PythonValue& field) { field = value; }
  template <class T>
  void read(const PythonValue& value, std::optional<T>& field) const {
    if (!value.is(Kind::None)) read(value, field.emplace());
  }
  template <class T>
  void read(const PythonValue& value, std::vector<T>& field) const {
    for (const PythonValue& item : of_kind(value, Kind::List, "a list").items)
      read(item, field.emplace_back());
  }
  template <class Row>
  requires requires(const Row& row) { name_of(row); }
  void read(const PythonValue& value, Row& field) const { field = read_row<Row>(value, parser_); }
  void read(const PythonValue& value, OneOrNone<std::vector<TensorRow>>& field) const {
    if (!value.is(Kind::None)) read(value, field.rows.emplace_back());
  }
  void read(const PythonValue& value, Opaque<std::optional<std::string>>& field) const {
    if (!value.is(Kind::None)) field.text = of_kind(value, Kind::Opaque, "None or bound data").text;
  }
  void read(const PythonValue& value, std::variant<std::int64_t, std::string>& field) const {
    if (value.is(Kind::Expression)) {
      field = value.text;
    } else {
      field = of_kind(value, Kind::Integer, "a whole number").integer;
    }
  }
  void read(const PythonValue& value, AccessorRow::Group& field) const {
    if (!value.is(Kind::Tuple) || value.items.size() != 2) throw error(value, "a pair of lists");
    read(value.items[0], field.first);
    read(value.items[1], field.second);
  }
  void read(const PythonValue& value, ExecPath& field) const {
    if (!value.is(Kind::Dict) && !value.is(Kind::OrderedDict))
      throw error(value, "a dict of conditions");
    field.is_ordered = value.is(Kind::OrderedDict);
    for (std::size_t k = 0; k < value.items.size(); ++k) {
      read(value.keys[k], field.entries.emplace_back().condition);
      field.entries.back().choice = value.items[k];
    }
  }
  void read(const PythonValue& value, FuncRow& field) const {
    const std::string_view expected = "a function like <FuncEnum.ADD: 1>";
    const std::string& text = of_kind(value, Kind::Opaque, expected).text;
    const std::string_view start = "<FuncEnum.";
    const std::size_t colon = text.find(": ");
    if (text.rfind(start, 0) != 0 || colon == std::string::npos) throw error(value, expected);
    const std::string_view digits =
        std::string_view(text).substr(colon + 2, text.size() - colon - 3);
    const auto number = parse_integer(digits);
    if (!number || std::to_string(*number) != digits) throw error(value, expected);
    field = {text.substr(start.size(), colon - start.size()), *number};
  }

  const PythonValue& object_;
  const PythonParser& parser_;
  std::string_view what_;
  std::vector<std::string>* absent_;
  std::unordered_set<std::string_view> used_;
};

// ---- references between tensors and operators ----

class Linker {
 public:
  Linker(const Dump& dump, const std::vector<PythonValue>& tensors,
         const std::vector<PythonValue>& operators, const PythonParser& parser)
      : dump_(dump), tensors_(tensors), operators_(operators), parser_(parser) {}

  void check() {
    name_all();
    for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
      for (const auto* names : {&dump_.tensors[k].src_ops, &dump_.tensors[k].dst_ops}) {
        for (const std::string& name : *names) {
          if (!operator_names_.contains(name)) {
            throw parser_.error(
                concat("the tensor names an operator that is not there: '", name, "'"),
                tensors_[k].offset);
          }
        }
      }
    }
    for (std::size_t k = 0; k < dump_.operators.size(); ++k) check_operator(k);
    check_cycles();
  }

 private:
  void name_all() {
    for (std::size_t k = 0; k < dump_.tensors.size(); ++k) {
      const auto& name = dump_.tensors[k].name;
      if (!name) throw parser_.error("a listed tensor has no name", tensors_[k].offset);
      if (name->empty()) throw parser_.error("a name is empty", tensors_[k].offset);
      if (!tensor_names_.emplace(*name, k).second) {
        throw parser_.error(concat("two tensors are called '", *name, "'"), tensors_[k].offset);
      }
    }
    std::unordered_set<std::string> originals;
    for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
      const OperatorRow& row = dump_.operators[k];
      if (!row.name) throw parser_.error("a listed operator has no name", operators_[k].offset);
      operator_names_.insert(*row.name);
      if (row.original_name) operator_names_.insert(*row.original_name);
      if (!originals.insert(row.original_name.value_or(*row.name)).second) {
        throw parser_.error(
            concat("two operators were called '", row.original_name.value_or(*row.name), "'"),
            operators_[k].offset);
      }
    }
  }

  void check_operator(std::size_t k) const {
    const OperatorRow& row = dump_.operators[k];
    for (const auto* names : {&row.inputs, &row.outputs}) {
      for (const std::string& name : *names) {
        if (!tensor_names_.contains(name)) {
          throw parser_.error(concat("the operator names a tensor that is not there: '", name, "'"),
                              operators_[k].offset);
        }
      }
    }
    if (row.outputs.empty())
      throw parser_.error("the operator has no outputs", operators_[k].offset);
    // Some operators have accessors only for their first operands.
    const auto fits = [&](const auto& accessors, std::size_t count, std::string_view what) {
      if (accessors && accessors->size() > count) {
        throw parser_
            .error(concat("the operator has more accessors than ", what), operators_[k].offset)
            .expected("at most ", count)
            .got(accessors->size());
      }
    };
    fits(row.input_accessors, row.inputs.size(), "inputs");
    fits(row.output_accessors, row.outputs.size(), "outputs");
  }

  void check_cycles() const {
    std::vector<bool> runs(dump_.operators.size());
    for (const std::uint32_t k : operators_in_order(dump_)) runs[k] = true;
    const auto stuck = std::find(runs.begin(), runs.end(), false);
    if (stuck == runs.end()) return;
    throw parser_.error("operators wait for one another in a circle",
                        operators_[static_cast<std::size_t>(stuck - runs.begin())].offset);
  }

  const Dump& dump_;
  const std::vector<PythonValue>&tensors_, &operators_;
  const PythonParser& parser_;
  std::unordered_map<std::string, std::size_t> tensor_names_;
  std::unordered_set<std::string> operator_names_;
};

// Determines the Python version of a text by printing it again; the default if none matches.
PythonStyle style_of(Dump& dump, std::string_view text) {
  for (const bool has_braces : {false, true}) {
    for (const bool wraps : {true, false}) {
      dump.style = {wraps, has_braces};
      if (print_dump(dump) == text) return dump.style;
    }
  }
  return {};
}

}  // namespace

ReadDump read_dump(std::string_view text, std::string_view source) {
  PythonParser parser(text, source);
  std::vector<PythonValue> tensors, operators;
  ReadDump read;
  parser.expect("Tensors:");
  parser.skip_space();
  while (!parser.accept("Operators:")) {
    tensors.push_back(parser.value());
    read.dump.tensors.push_back(ObjectReader::read_row<TensorRow>(tensors.back(), parser));
    parser.skip_space();
    if (parser.at_end()) throw parser.error("the text ends before 'Operators:'");
  }
  for (parser.skip_space(); !parser.at_end(); parser.skip_space()) {
    operators.push_back(parser.value());
    read.dump.operators.push_back(ObjectReader::read_row<OperatorRow>(operators.back(), parser));
  }
  Linker(read.dump, tensors, operators, parser).check();
  if (parser.depends_on_style()) read.dump.style = style_of(read.dump, text);
  read.source = SourceMap(text, std::move(tensors), std::move(operators));
  return read;
}

SourceMap::SourceMap(std::string_view text, std::vector<PythonValue> tensors,
                     std::vector<PythonValue> operators)
    : tensors_(std::move(tensors)), operators_(std::move(operators)), line_starts_{0} {
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '\n') line_starts_.push_back(k + 1);
  }
}

std::string SourceMap::place(std::string_view path) const {
  const std::vector<std::string> steps = split(path, '/');
  const std::vector<PythonValue>& list = steps.front() == "tensors" ? tensors_ : operators_;
  const auto index = steps.size() > 1 ? parse_integer(steps[1]) : std::nullopt;
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= list.size()) return "";
  const PythonValue* at = &list[static_cast<std::size_t>(*index)];
  for (std::size_t k = 2; k < steps.size(); ++k) {
    const PythonValue* next = at->has_keys() ? at->find(steps[k]) : nullptr;
    const auto position = parse_integer(steps[k]);
    if (next == nullptr && position && *position >= 0 &&
        static_cast<std::size_t>(*position) < at->items.size()) {
      next = &at->items[static_cast<std::size_t>(*position)];
    }
    if (next == nullptr) break;
    at = next;
  }
  const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), at->offset) - 1;
  return concat("line ", line - line_starts_.begin() + 1, ", column ", at->offset - *line + 1);
}

}  // namespace tenon::documents::aitemplate

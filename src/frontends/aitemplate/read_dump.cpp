#include "frontends/aitemplate/read_dump.h"

#include "base/text.h"
#include "frontends/aitemplate/python_parser.h"
#include "ir/dim.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::aitemplate {
namespace {

using Kind = PythonValue::Kind;

// The attributes of one object: each is read into its field or kept as a further one.
class ObjectReader {
 public:
  ObjectReader(const PythonValue& object, const PythonParser& parser, std::string_view what)
      : object_(object), parser_(parser), what_(what) {
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
  /// Null, and noted, where this version does not print the attribute.
  const PythonValue* find_or_note(std::string_view key, std::vector<std::string>& absent) {
    const PythonValue* found = find(key);
    if (found == nullptr) absent.emplace_back(key);
    return found;
  }
  const PythonValue& get(std::string_view key) {
    const PythonValue* found = find(key);
    if (found == nullptr) {
      throw parser_.error(concat("the ", what_, " has no '", key, "'"), object_.offset);
    }
    return *found;
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

  Error error(const PythonValue& value, std::string_view expected) const {
    return parser_.error(concat("the ", what_, " should have ", expected, " here"), value.offset);
  }
  const PythonValue& of_kind(const PythonValue& value, Kind kind, std::string_view expected) const {
    if (!value.is(kind)) throw error(value, expected);
    return value;
  }
  bool boolean(const PythonValue& value) const {
    return of_kind(value, Kind::Bool, "True or False").integer != 0;
  }
  std::int64_t integer(const PythonValue& value) const {
    return of_kind(value, Kind::Integer, "a whole number").integer;
  }
  std::int64_t count(const PythonValue& value) const {
    if (integer(value) < 0) throw error(value, "a number that is not negative");
    if (value.integer > kMaxExtent) throw error(value, "a number of at most 2^56");
    return value.integer;
  }
  const std::string& text(const PythonValue& value) const {
    return of_kind(value, Kind::Text, "a text").text;
  }
  std::optional<std::string> text_or_none(const PythonValue& value) const {
    if (value.is(Kind::None)) return std::nullopt;
    return text(value);
  }
  std::optional<std::int64_t> count_or_none(const PythonValue& value) const {
    if (value.is(Kind::None)) return std::nullopt;
    return count(value);
  }
  const std::vector<PythonValue>& items(const PythonValue& value) const {
    return of_kind(value, Kind::List, "a list").items;
  }
  std::vector<std::string> texts(const PythonValue& value) const {
    std::vector<std::string> all;
    for (const PythonValue& item : items(value)) all.push_back(text(item));
    return all;
  }
  std::vector<std::optional<std::string>> texts_or_none(const PythonValue& value) const {
    std::vector<std::optional<std::string>> all;
    for (const PythonValue& item : items(value)) all.push_back(text_or_none(item));
    return all;
  }
  std::vector<std::int64_t> counts(const PythonValue& value) const {
    std::vector<std::int64_t> all;
    for (const PythonValue& item : items(value)) all.push_back(count(item));
    return all;
  }

 private:
  const PythonValue& object_;
  const PythonParser& parser_;
  std::string_view what_;
  std::unordered_set<std::string_view> used_;
};

class TableReader {
 public:
  explicit TableReader(const PythonParser& parser) : parser_(parser) {}
  TensorRow tensor(const PythonValue& value) const;
  OperatorRow operation(const PythonValue& value) const;

 private:
  DimRow dim(const PythonValue& value) const;
  std::vector<DimRow> dims(const ObjectReader& owner, const PythonValue& list) const;
  std::vector<TensorRow> tensor_or_none(const PythonValue& value) const;
  AccessorRow accessor(const PythonValue& value) const;
  std::optional<std::vector<AccessorRow>> accessors(ObjectReader& owner,
                                                    std::string_view key) const;
  std::optional<ExecPath> exec_path(ObjectReader& owner) const;
  FuncRow func(const ObjectReader& owner, const PythonValue& value) const;

  const PythonParser& parser_;
};

DimRow TableReader::dim(const PythonValue& value) const {
  ObjectReader object(value, parser_, "dim");
  DimRow row;
  row.depth = object.count(object.get("depth"));
  row.name = object.text_or_none(object.get("name"));
  row.is_nop = object.boolean(object.get("nop"));
  row.values = object.counts(object.get("values"));
  if (row.values.empty()) throw object.error(object.get("values"), "at least one value");
  if (const PythonValue* symbolic = object.find_or_note("symbolic_value", row.absent)) {
    if (symbolic->is(Kind::Expression)) {
      row.symbolic_value = symbolic->text;
    } else {
      row.symbolic_value = object.integer(*symbolic);
    }
  }
  row.further = object.further();
  return row;
}

std::vector<DimRow> TableReader::dims(const ObjectReader& owner, const PythonValue& list) const {
  std::vector<DimRow> rows;
  for (const PythonValue& item : owner.items(list)) rows.push_back(dim(item));
  return rows;
}

std::vector<TensorRow> TableReader::tensor_or_none(const PythonValue& value) const {
  std::vector<TensorRow> rows;
  if (!value.is(Kind::None)) rows.push_back(tensor(value));
  return rows;
}

TensorRow TableReader::tensor(const PythonValue& value) const {
  ObjectReader object(value, parser_, "tensor");
  TensorRow row;
  row.name = object.text_or_none(object.get("name"));
  row.dtype = object.text(object.get("dtype"));
  row.shape = dims(object, object.get("shape"));
  row.depth = object.count(object.get("depth"));
  row.src_ops = object.texts(object.get("src_ops"));
  row.dst_ops = object.texts(object.get("dst_ops"));
  row.is_nop = object.boolean(object.get("nop"));
  row.is_input = object.boolean(object.get("is_input"));
  row.is_output = object.boolean(object.get("is_output"));
  const auto flag = [&](std::string_view key, bool& field) {
    if (const PythonValue* found = object.find_or_note(key, row.absent))
      field = object.boolean(*found);
  };
  flag("is_param", row.is_param);
  flag("is_internal_constant", row.is_internal_constant);
  flag("has_output_aliases", row.has_output_aliases);
  flag("check_nan_and_inf", row.check_nan_and_inf);
  flag("check_outputs", row.check_outputs);
  flag("skip_constant_folding", row.skip_constant_folding);
  if (const PythonValue* found = object.find_or_note("original_name", row.absent)) {
    row.original_name = object.text_or_none(*found);
  }
  if (const PythonValue* found = object.find_or_note("is_view_of", row.absent)) {
    row.is_view_of = tensor_or_none(*found);
  }
  if (const PythonValue* found = object.find_or_note("external_tensor", row.absent)) {
    row.external_tensor = tensor_or_none(*found);
  }
  if (const PythonValue* found = object.find_or_note("value", row.absent)) row.value = *found;
  if (const PythonValue* found = object.find_or_note("data", row.absent);
      found && !found->is(Kind::None)) {
    row.data = object.of_kind(*found, Kind::Opaque, "None or bound data").text;
  }
  const auto number = [&](std::string_view key, std::optional<std::int64_t>& field) {
    if (const PythonValue* found = object.find_or_note(key, row.absent))
      field = object.count_or_none(*found);
  };
  number("offset", row.offset);
  number("constant_folding_output_idx", row.constant_folding_output_idx);
  row.further = object.further();
  return row;
}

AccessorRow TableReader::accessor(const PythonValue& value) const {
  ObjectReader object(value, parser_, "tensor accessor");
  AccessorRow row;
  if (const PythonValue& mapping = object.get("_dim_mapping"); !mapping.is(Kind::None)) {
    row.dim_mapping.emplace();
    for (const PythonValue& group : object.items(mapping)) {
      if (!group.is(Kind::Tuple) || group.items.size() != 2)
        throw object.error(group, "a pair of lists");
      row.dim_mapping->emplace_back(object.counts(group.items[0]), object.counts(group.items[1]));
    }
  }
  row.original_shapes = dims(object, object.get("original_shapes"));
  if (const PythonValue& actual = object.get("actual_shapes"); !actual.is(Kind::None)) {
    row.actual_shapes = dims(object, actual);
  }
  row.offset = object.count(object.get("offset"));
  row.stride_dim = object.count_or_none(object.get("stride_dim"));
  row.original_total_elements =
      object.count_or_none(object.get("original_total_elements_from_stride_dim"));
  row.actual_total_elements =
      object.count_or_none(object.get("actual_total_elements_from_stride_dim"));
  row.is_contiguous = object.boolean(object.get("is_contiguous"));
  if (const PythonValue* found = object.find_or_note("is_from_strided_tensor", row.absent)) {
    row.is_from_strided_tensor = object.boolean(*found);
  }
  if (const PythonValue* found = object.find_or_note("tensor_dtype", row.absent)) {
    row.tensor_dtype = object.text(*found);
  }
  row.further = object.further();
  return row;
}

std::optional<std::vector<AccessorRow>> TableReader::accessors(ObjectReader& owner,
                                                               std::string_view key) const {
  const PythonValue* list = owner.find(key);
  if (list == nullptr) return std::nullopt;
  std::vector<AccessorRow> rows;
  for (const PythonValue& item : owner.items(*list)) rows.push_back(accessor(item));
  return rows;
}

std::optional<ExecPath> TableReader::exec_path(ObjectReader& owner) const {
  const PythonValue* found = owner.find("exec_path");
  if (found == nullptr) return std::nullopt;
  if (!found->is(Kind::Dict) && !found->is(Kind::OrderedDict)) {
    throw owner.error(*found, "a dict of conditions");
  }
  ExecPath path;
  path.is_ordered = found->is(Kind::OrderedDict);
  for (std::size_t k = 0; k < found->items.size(); ++k) {
    path.entries.push_back({owner.text(found->keys[k]), found->items[k]});
  }
  return path;
}

FuncRow TableReader::func(const ObjectReader& owner, const PythonValue& value) const {
  const std::string& text =
      owner.of_kind(value, Kind::Opaque, "a function like <FuncEnum.ADD: 1>").text;
  const std::string_view start = "<FuncEnum.";
  const std::size_t colon = text.find(": ");
  if (text.rfind(start, 0) == 0 && colon != std::string::npos) {
    const std::string_view digits =
        std::string_view(text).substr(colon + 2, text.size() - colon - 3);
    const auto number = parse_integer(digits);
    FuncRow row{text.substr(start.size(), colon - start.size()), number.value_or(0)};
    if (number && std::to_string(*number) == digits) return row;
  }
  throw owner.error(value, "a function like <FuncEnum.ADD: 1>");
}

OperatorRow TableReader::operation(const PythonValue& value) const {
  ObjectReader object(value, parser_, "operator");
  OperatorRow row;
  row.op = object.text(object.get("op"));
  row.name = object.text_or_none(object.get("name"));
  if (const PythonValue* found = object.find("original_name"))
    row.original_name = object.text(*found);
  row.depth = object.count(object.get("depth"));
  row.is_nop = object.boolean(object.get("nop"));
  if (const PythonValue* found = object.find("has_profiler"))
    row.has_profiler = object.boolean(*found);
  row.inputs = object.texts(object.get("inputs"));
  row.outputs = object.texts(object.get("outputs"));
  if (const PythonValue* found = object.find("args")) row.args = object.texts_or_none(*found);
  if (const PythonValue* found = object.find("original_inputs"))
    row.original_inputs = object.texts_or_none(*found);
  if (const PythonValue* found = object.find("original_outputs")) {
    row.original_outputs.emplace();
    for (const PythonValue& item : object.items(*found))
      row.original_outputs->push_back(tensor(item));
  }
  row.input_accessors = accessors(object, "input_accessors");
  row.output_accessors = accessors(object, "output_accessors");
  if (const PythonValue* found = object.find("func")) row.func = func(object, *found);
  if (const PythonValue* found = object.find("elementwise_ops")) {
    for (const PythonValue& item : object.items(*found))
      row.elementwise_ops.push_back(operation(item));
    if (row.elementwise_ops.empty()) throw object.error(*found, "at least one inner operator");
  }
  row.exec_path = exec_path(object);
  row.further = object.further();
  return row;
}

// ---- what tensors and operators say of one another ----

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

  // Takes operators whose inputs are all written, until none is left.
  void check_cycles() const {
    std::vector<std::size_t> missing_writers(dump_.tensors.size(), 0);
    std::vector<std::vector<std::size_t>> readers(dump_.tensors.size());
    std::vector<std::size_t> waiting(dump_.operators.size(), 0), ready;
    for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
      for (const std::string& name : dump_.operators[k].outputs)
        ++missing_writers[tensor_names_.at(name)];
      for (const std::string& name : dump_.operators[k].inputs)
        readers[tensor_names_.at(name)].push_back(k);
    }
    for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
      for (const std::string& name : dump_.operators[k].inputs)
        waiting[k] += missing_writers[tensor_names_.at(name)] > 0;
      if (waiting[k] == 0) ready.push_back(k);
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::size_t k = ready.back();
      ready.pop_back();
      ++done;
      for (const std::string& name : dump_.operators[k].outputs) {
        const std::size_t tensor = tensor_names_.at(name);
        if (--missing_writers[tensor] > 0) continue;
        for (const std::size_t reader : readers[tensor]) {
          if (--waiting[reader] == 0) ready.push_back(reader);
        }
      }
    }
    if (done == dump_.operators.size()) return;
    const auto stuck =
        std::find_if(waiting.begin(), waiting.end(), [](std::size_t n) { return n > 0; });
    throw parser_.error("operators wait for one another in a circle",
                        operators_[static_cast<std::size_t>(stuck - waiting.begin())].offset);
  }

  const Dump& dump_;
  const std::vector<PythonValue>&tensors_, &operators_;
  const PythonParser& parser_;
  std::unordered_map<std::string, std::size_t> tensor_names_;
  std::unordered_set<std::string> operator_names_;
};

// The version of Python that a text is from, by what comes out; the usual one where none fits.
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
  const TableReader tables(parser);
  std::vector<PythonValue> tensors, operators;
  ReadDump read;
  parser.expect("Tensors:");
  parser.skip_space();
  while (!parser.accept("Operators:")) {
    tensors.push_back(parser.value());
    read.dump.tensors.push_back(tables.tensor(tensors.back()));
    parser.skip_space();
    if (parser.at_end()) throw parser.error("the text ends before 'Operators:'");
  }
  for (parser.skip_space(); !parser.at_end(); parser.skip_space()) {
    operators.push_back(parser.value());
    read.dump.operators.push_back(tables.operation(operators.back()));
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

}  // namespace tenon::aitemplate

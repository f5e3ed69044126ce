#include "documents/aitemplate/tables.h"

#include "base/error.h"
#include "base/ready_order.h"
#include "documents/aitemplate/schema.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

const std::vector<std::string>* absent_of(const auto& row) { return &row.absent; }
const std::vector<std::string>* absent_of(const OperatorRow&) { return nullptr; }

// Writes the members of an object in any order, since printing sorts them.
class ObjectWriter {
 public:
  template <class Row>
  static PythonValue object(const Row& row) {
    ObjectWriter writer(absent_of(row));
    fields(writer, row);
    for (const auto& [key, value] : row.further) writer.object_.set(key, value);
    return std::move(writer.object_);
  }

  void operator()(std::string_view key, const auto& field) { object_.set(key, python(field)); }
  void noted(std::string_view key, const auto& field) {
    if (std::find(absent_->begin(), absent_->end(), key) == absent_->end())
      object_.set(key, python(field));
  }
  template <class T>
  void maybe(std::string_view key, const std::optional<T>& field) {
    if (field) object_.set(key, python(*field));
  }
  void maybe(std::string_view key, const std::vector<OperatorRow>& field) {
    if (!field.empty()) object_.set(key, python(field));
  }

 private:
  explicit ObjectWriter(const std::vector<std::string>* absent) : absent_(absent) {
    object_.kind = Kind::Object;
  }

  static PythonValue python(bool value) { return PythonValue::boolean(value); }
  static PythonValue python(std::int64_t value) { return PythonValue::number(value); }
  static PythonValue python(const std::string& value) { return PythonValue::string(value); }
  static PythonValue python(const PythonValue& value) { return value; }
  template <class T>
  static PythonValue python(const std::optional<T>& value) {
    return value ? python(*value) : PythonValue();
  }
  template <class T>
  static PythonValue python(const std::vector<T>& items) {
    PythonValue list = PythonValue::of(Kind::List);
    for (const T& item : items) list.items.push_back(python(item));
    return list;
  }
  template <class Row>
  requires requires(const Row& row) { to_python(row); }
  static PythonValue python(const Row& row) { return to_python(row); }
  static PythonValue python(const OneOrNone<const std::vector<TensorRow>>& tensor) {
    return tensor.rows.empty() ? PythonValue() : to_python(tensor.rows.front());
  }
  static PythonValue python(const Opaque<const std::optional<std::string>>& data) {
    return data.text ? PythonValue::opaque(*data.text) : PythonValue();
  }
  static PythonValue python(const std::variant<std::int64_t, std::string>& value) {
    const auto* number = std::get_if<std::int64_t>(&value);
    return number != nullptr ? python(*number) : PythonValue::expression(std::get<1>(value));
  }
  static PythonValue python(const AccessorRow::Group& group) {
    return PythonValue::of(Kind::Tuple, {python(group.first), python(group.second)});
  }
  static PythonValue python(const FuncRow& func) {
    return PythonValue::opaque(concat("<FuncEnum.", func.name, ": ", func.number, ">"));
  }
  static PythonValue python(const ExecPath& path) {
    PythonValue dict = PythonValue::of(path.is_ordered ? Kind::OrderedDict : Kind::Dict);
    for (const ExecEntry& entry : path.entries) dict.set(entry.condition, entry.choice);
    return dict;
  }

  const std::vector<std::string>* absent_;
  PythonValue object_;
};

}  // namespace

const PythonValue* OperatorRow::find(std::string_view attribute) const {
  const auto found = std::find_if(further.begin(), further.end(),
                                  [&](const Member& each) { return each.first == attribute; });
  return found == further.end() ? nullptr : &found->second;
}

std::optional<std::string> algorithm_of(const ExecEntry& entry) {
  if (entry.choice.is(Kind::Text)) return entry.choice.text;
  const PythonValue* algorithm = entry.choice.is(Kind::Call) ? entry.choice.find("algo") : nullptr;
  if (algorithm == nullptr || !algorithm->is(Kind::Text)) return std::nullopt;
  return algorithm->text;
}

PythonValue to_python(const AccessorRow& row) { return ObjectWriter::object(row); }
PythonValue to_python(const DimRow& row) { return ObjectWriter::object(row); }
PythonValue to_python(const TensorRow& row) { return ObjectWriter::object(row); }
PythonValue to_python(const OperatorRow& row) { return ObjectWriter::object(row); }

std::vector<std::uint32_t> operators_in_order(const Dump& dump) {
  // Adds a zero-time task per written tensor after the operators.
  std::vector<ReadyTask> tasks(dump.operators.size());
  std::unordered_map<std::string_view, std::uint32_t> tensors;
  for (std::uint32_t k = 0; k < dump.operators.size(); ++k) {
    tasks[k].priority = k;
    for (const std::string& name : dump.operators[k].outputs) {
      const auto [tensor, is_new] = tensors.emplace(name, tasks.size());
      if (is_new) tasks.emplace_back().takes_step = false;
      tasks[tensor->second].needs.push_back(k);
    }
  }
  for (std::uint32_t k = 0; k < dump.operators.size(); ++k) {
    for (const std::string& name : dump.operators[k].inputs) {
      const auto tensor = tensors.find(name);
      if (tensor != tensors.end()) tasks[k].needs.push_back(tensor->second);
    }
  }
  return ready_order(tasks).sequence;
}

std::string print_dump(const Dump& dump) {
  std::string text = "Tensors: ";
  for (std::size_t k = 0; k < dump.tensors.size(); ++k) {
    text += (k == 0 ? "" : "\n\n") + pretty_print(to_python(dump.tensors[k]), dump.style);
  }
  text += "\n\nOperators: ";
  for (std::size_t k = 0; k < dump.operators.size(); ++k) {
    text += (k == 0 ? "" : "\n\n") + pretty_print(to_python(dump.operators[k]), dump.style);
  }
  return text + "\n\n";
}

}  // namespace tenon::documents::aitemplate

#include "frontends/torch/import_node.h"

#include "base/error.h"
#include "frontends/torch/argument.h"
#include "frontends/torch/importer.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::frontends::torch {
namespace {

constexpr std::size_t kMaxListed = 1 << 16;

bool is_none(const JsonReader& argument) { return tagged(argument).first == "as_none"; }

double real_of(const JsonReader& value) {
  if (!value.is_text()) return value.real();
  const std::string& text = value.text();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  throw value.error("a number is malformed");
}

// Order of PyTorch's promotion: truth values, integers, floats.
int kind_rank(DType dtype) { return dtype == DType::Bool ? 0 : is_float(dtype) ? 2 : 1; }

DType promoted_pair(DType a, DType b) {
  if (a == b) return a;
  if (kind_rank(a) != kind_rank(b)) return kind_rank(a) > kind_rank(b) ? a : b;
  const int a_bits = info(a).bits, b_bits = info(b).bits;
  if (a_bits != b_bits) return a_bits > b_bits ? a : b;
  // f16 with bf16; unsigned with signed of the same width.
  if (kind_rank(a) == 2) return DType::F32;
  return a_bits == 8 ? DType::I16 : a_bits == 16 ? DType::I32 : DType::I64;
}

}  // namespace

Dims as_dims(std::span<const std::int64_t> numbers) { return {numbers.begin(), numbers.end()}; }

NodeImport::NodeImport(TorchImporter& importer, const JsonReader& node, std::string_view op_name,
                       std::string_view overload_name)
    : op(op_name),
      overload(overload_name),
      build(importer.builder_),
      importer_(importer),
      node_(node),
      first_new_value_(static_cast<std::uint32_t>(build.graph().value_id_bound())) {
  for (const JsonReader& input : node.member("inputs").elements())
    arguments_.emplace_back(input.member("name").text(), input.member("arg"));
  for (const JsonReader& output : node.member("outputs").elements()) {
    const auto [kind, value] = tagged(output);
    if (kind == "as_tensor") {
      result_names_.push_back(value.member("name").text());
    } else if (kind == "as_tensors") {
      for (const JsonReader& each : value.elements())
        result_names_.push_back(each.member("name").text());
    } else if (kind == "as_none") {
      result_names_.emplace_back();
    } else {
      unsupported(concat("a result of the kind '", kind.substr(3), "'"));
    }
  }
}

std::optional<JsonReader> NodeImport::argument(std::string_view name) const {
  const auto found =
      std::ranges::find(arguments_, name, [](const auto& each) { return each.first; });
  return found == arguments_.end() ? std::nullopt : std::optional(found->second);
}

JsonReader NodeImport::required(std::string_view name) const {
  const auto found = argument(name);
  if (!found || is_none(*found)) throw node_.error(concat("argument '", name, "' is missing"));
  return *found;
}

bool NodeImport::has(std::string_view name) const {
  const auto found = argument(name);
  return found && !is_none(*found);
}

bool NodeImport::is_tensor(std::string_view name) const {
  const auto found = argument(name);
  return found && tagged(*found).first == "as_tensor";
}

Var NodeImport::first() const {
  if (arguments_.empty()) throw node_.error("the node has no argument");
  return tensor(arguments_.front().first);
}

Var NodeImport::tensor(std::string_view name) const {
  const auto [kind, value] = tagged(required(name));
  if (kind != "as_tensor") throw value.error(concat("argument '", name, "' is no tensor"));
  return importer_.read(value.member("name").text());
}

Var NodeImport::tensor_or_none(std::string_view name) const {
  return has(name) ? tensor(name) : Var();
}

std::vector<Var> NodeImport::tensors(std::string_view name) const {
  const auto [kind, value] = tagged(required(name));
  std::vector<Var> values;
  if (kind == "as_optional_tensors") {
    for (const JsonReader& each : value.elements()) {
      const auto [inner, tensor_name] = tagged(each);
      values.push_back(inner == "as_tensor" ? importer_.read(tensor_name.member("name").text())
                                            : Var());
    }
  } else if (kind == "as_tensors") {
    for (const JsonReader& each : value.elements())
      values.push_back(importer_.read(each.member("name").text()));
  } else {
    throw value.error(concat("argument '", name, "' is no list of tensors"));
  }
  if (values.size() > kMaxListed) throw value.error("the list is too long");
  return values;
}

Var NodeImport::operand(std::string_view name, DType wanted) const {
  if (is_tensor(name)) return cast_to(tensor(name), wanted);
  const auto [kind, value] = tagged(required(name));
  if (kind == "as_sym_int") return cast_to(number_of(importer_.dim_of(value)), wanted);
  if (kind == "as_bool") return number(value.boolean() ? 1 : 0, wanted);
  return number(real_of(value), wanted);
}

Dim NodeImport::extent(std::string_view name, std::optional<Dim> otherwise) const {
  if (otherwise && !has(name)) return *otherwise;
  const auto [kind, value] = tagged(required(name));
  if (kind == "as_sym_int") return importer_.dim_of(value);
  return value.integer();
}

Dims NodeImport::extents(std::string_view name, Dims otherwise) const {
  if (!has(name)) return otherwise;
  const auto [kind, value] = tagged(required(name));
  Dims dims;
  if (kind == "as_int") return {value.integer()};
  if (kind == "as_sym_int") return {importer_.dim_of(value)};
  for (const JsonReader& each : value.elements())
    dims.push_back(kind == "as_sym_ints" ? importer_.dim_of(each) : Dim(each.integer()));
  return dims;
}

std::int64_t NodeImport::integer(std::string_view name,
                                 std::optional<std::int64_t> otherwise) const {
  if (otherwise && !has(name)) return *otherwise;
  const Dim value = extent(name);
  if (!value.is_constant()) unsupported(concat("argument '", name, "' depends on symbols"));
  return value.constant();
}

std::vector<std::int64_t> NodeImport::integers(std::string_view name,
                                               std::vector<std::int64_t> otherwise) const {
  if (!has(name)) return otherwise;
  const Dims dims = extents(name);
  if (!all_constant(dims)) unsupported(concat("argument '", name, "' depends on symbols"));
  return constants(dims);
}

Dims NodeImport::for_axes(std::string_view name, std::size_t count, std::int64_t otherwise) const {
  std::vector<std::int64_t> numbers = integers(name);
  if (numbers.empty()) numbers = {otherwise};
  if (numbers.size() == 1) numbers.resize(count, numbers.front());
  return as_dims(numbers);
}

double NodeImport::real(std::string_view name, std::optional<double> otherwise) const {
  if (otherwise && !has(name)) return *otherwise;
  const auto [kind, value] = tagged(required(name));
  if (kind == "as_tensor" || kind == "as_sym_int" || kind == "as_sym_float")
    unsupported(concat("argument '", name, "' is computed in the run"));
  if (kind == "as_bool") return value.boolean() ? 1 : 0;
  return real_of(value);
}

std::vector<double> NodeImport::reals(std::string_view name) const {
  std::vector<double> numbers;
  if (!has(name)) return numbers;
  for (const JsonReader& each : tagged(required(name)).second.elements())
    numbers.push_back(real_of(each));
  return numbers;
}

bool NodeImport::flag(std::string_view name, bool otherwise) const {
  return has(name) ? tagged(required(name)).second.boolean() : otherwise;
}

std::string NodeImport::text(std::string_view name, std::string otherwise) const {
  return has(name) ? tagged(required(name)).second.text() : otherwise;
}

std::optional<DType> NodeImport::element(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return dtype_of_scalar_type(tagged(required(name)).second.integer());
}

std::size_t NodeImport::axis(std::string_view name, std::size_t rank,
                             std::optional<std::int64_t> otherwise) const {
  const std::int64_t given = integer(name, otherwise);
  const auto count = static_cast<std::int64_t>(rank);
  // PyTorch allows axis 0 of a scalar.
  if (count == 0 && (given == 0 || given == -1)) return 0;
  if (given < -count || given >= count) {
    throw node_.error(concat("argument '", name, "' names an axis that the tensor lacks"))
        .expected("at least ", -count, " and less than ", count)
        .got(given);
  }
  return static_cast<std::size_t>(given < 0 ? given + count : given);
}

std::vector<std::int64_t> NodeImport::axes(std::string_view name, std::size_t rank) const {
  std::vector<std::int64_t> list = integers(name);
  const auto count = static_cast<std::int64_t>(rank);
  if (list.empty()) {
    list.resize(rank);
    std::iota(list.begin(), list.end(), 0);
  }
  for (std::int64_t& each : list) {
    if (each < -count || each >= count)
      throw node_.error(concat("argument '", name, "' names an axis that the tensor lacks"))
          .got(each);
    if (each < 0) each += count;
  }
  return list;
}

DType NodeImport::promoted(std::initializer_list<std::string_view> names) const {
  std::optional<DType> with_axes, without_axes, of_numbers;
  const auto note = [](std::optional<DType>& best, DType next) {
    best = best ? promoted_pair(*best, next) : next;
  };
  for (const std::string_view name : names) {
    if (!has(name)) continue;
    const auto [kind, value] = tagged(required(name));
    if (kind == "as_tensor") {
      const Var given = tensor(name);
      note(rank(given) > 0 ? with_axes : without_axes, dtype(given));
    } else {
      note(of_numbers, kind == "as_bool"                          ? DType::Bool
                       : kind == "as_int" || kind == "as_sym_int" ? DType::I64
                                                                  : DType::F32);
    }
  }
  std::optional<DType> best;
  for (const std::optional<DType>& next : {with_axes, without_axes, of_numbers}) {
    if (next && (!best || kind_rank(*next) > kind_rank(*best))) best = next;
  }
  return best.value_or(DType::F32);
}

const TensorType& NodeImport::result_type(std::size_t index) const {
  return importer_.type_named(result_names_.at(index));
}

bool NodeImport::is_complex() const { return importer_.scope_->complex[result_names_.at(0)]; }

bool NodeImport::is_complex(std::string_view name) const {
  if (!is_tensor(name)) return false;
  return importer_.scope_->complex[tagged(required(name)).second.member("name").text()];
}

Var NodeImport::call(std::string_view called, const std::vector<Var>& operands,
                     Attributes attrs) const {
  return build.call_all(called, operands, std::move(attrs), {""}).front();
}

std::vector<Var> NodeImport::call_all(std::string_view called, const std::vector<Var>& operands,
                                      Attributes attrs, std::size_t count) const {
  return build.call_all(called, operands, std::move(attrs), std::vector<std::string>(count));
}

Var NodeImport::number(double value, DType wanted) const {
  return build.constant(Tensor::scalar(wanted, value));
}

Var NodeImport::number_of(const Dim& extent) const {
  if (extent.is_constant())
    return build.constant(Tensor::of<std::int64_t>(DType::I64, {}, {extent.constant()}));
  if (extent.range().lo < 0) unsupported("a number that may be negative depends on symbols");
  const Var one = build.constant(Constant::splat(Tensor::scalar(DType::Bool, 1), {1}));
  return call("size", {call("expand", {one}, {{"shape", Dims{extent}}})});
}

Var NodeImport::permuted(Var value, const std::vector<std::int64_t>& perm) const {
  if (std::ranges::is_sorted(perm)) return value;
  return call("transpose", {value}, {{"perm", as_dims(perm)}});
}

Var NodeImport::swapped(Var value, std::size_t a, std::size_t b) const {
  std::vector<std::int64_t> perm(rank(value));
  std::iota(perm.begin(), perm.end(), 0);
  if (perm.empty()) return value;
  std::swap(perm.at(a), perm.at(b));
  return permuted(value, perm);
}

void NodeImport::results(const std::vector<Var>& values, bool has_stated_extents) {
  Graph& graph = build.graph();
  for (std::size_t k = 0; k < result_names_.size() && k < values.size(); ++k) {
    const std::string& name = result_names_[k];
    if (name.empty() || !values[k].is_valid()) continue;
    const TensorType& stated = result_type(k);
    const Var value = cast_to(values[k], stated.dtype);
    const Dims made = dims(value);
    bool fits = !has_stated_extents || made.size() == stated.dims.size();
    for (std::size_t axis = 0; has_stated_extents && fits && axis < made.size(); ++axis)
      fits = !provably_different(made[axis], stated.dims[axis]);
    if (!fits) {
      throw Error("the result has other extents than the program states")
          .expected(stated.dims)
          .got(made);
    }
    const ValueId id(value.id());
    if (value.id() >= first_new_value_ && graph.value(id).producer && graph.value(id).name != name)
      graph.rename(id, graph.free_name(name));
    importer_.define(name, value);
  }
}

void NodeImport::unsupported(std::string reason) const { throw NotSupported{std::move(reason)}; }

const Handler* find_handler(std::string_view op) {
  static const std::vector<std::span<const Handler>> tables = {
      elementwise_handlers(), reduction_handlers(),   shape_handlers(),  indexing_handlers(),
      creation_handlers(),    contraction_handlers(), window_handlers(), normalization_handlers(),
      recurrent_handlers(),   complex_handlers()};
  for (const std::span<const Handler> table : tables) {
    const auto found = std::ranges::find(table, op, &Handler::op);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

}  // namespace tenon::frontends::torch

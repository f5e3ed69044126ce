#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

namespace tenon::inline ops::lookup_op {
namespace {

struct Attrs {
  bool strict = false;  // missing keys are an error
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &keys = in["keys"], &values = in["values"];
  if (x.dtype != keys.dtype) {
    throw Error("lookup: elements and keys differ in type").got("x: ", x, ", keys: ", keys);
  }
  if (keys.rank() != 1 || values.rank() != 1 || !assume_equal(keys.dims[0], values.dims[0])) {
    throw Error("lookup: every key needs one value")
        .expected("two lists of equal length")
        .got("keys: ", keys, ", values: ", values);
  }
  if (!attrs.strict && !in.has("otherwise")) {
    throw Error("lookup: there is nothing to give where no key fits")
        .hint("give 'otherwise', or set strict");
  }
  if (in.has("otherwise") &&
      (in["otherwise"].dtype != values.dtype || in["otherwise"].rank() != 0)) {
    throw Error("lookup: 'otherwise' is no value")
        .expected(values.dtype, "[]")
        .got(in["otherwise"]);
  }
  return {values.dtype, x.dims, {}};
}

// Hashes numbers by their bits after normalization: NaN equals NaN, and -0 equals 0.
std::uint64_t number_key(const Tensor& x, std::int64_t index) {
  if (is_integer(x.dtype()) || x.dtype() == DType::Bool) {
    return static_cast<std::uint64_t>(x.integer_at(index));
  }
  const double value = x.real_at(index);
  if (std::isnan(value)) return std::bit_cast<std::uint64_t>(std::nan(""));
  return std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
}

// Returns the position of the first key that equals each element, or -1.
template <class Key, class KeyOf>
std::vector<std::int64_t> positions(const Tensor& x, const Tensor& keys, KeyOf key_of) {
  std::unordered_map<Key, std::int64_t> known;
  for (std::int64_t k = 0; k < keys.size(); ++k) known.emplace(key_of(keys, k), k);
  std::vector<std::int64_t> found(static_cast<std::size_t>(x.size()));
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const auto entry = known.find(key_of(x, k));
    found[static_cast<std::size_t>(k)] = entry == known.end() ? -1 : entry->second;
  }
  return found;
}

void copy_element(const Tensor& from, std::int64_t source, Tensor& to, std::int64_t target) {
  if (to.dtype() == DType::String) {
    to.mutable_strings()[static_cast<std::size_t>(target)] =
        from.strings()[static_cast<std::size_t>(source)];
    return;
  }
  const auto width = static_cast<std::size_t>(info(to.dtype()).storage_bytes);
  std::ranges::copy(from.bytes().subspan(static_cast<std::size_t>(source) * width, width),
                    to.mutable_bytes().begin() + target * static_cast<std::ptrdiff_t>(width));
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor &x = op.tensor("x"), &keys = op.tensor("keys"), &values = op.tensor("values");
  const bool is_text = x.dtype() == DType::String;
  const auto text_key = [](const Tensor& of, std::int64_t index) {
    return of.strings()[static_cast<std::size_t>(index)];
  };
  const std::vector<std::int64_t> found = is_text ? positions<std::string>(x, keys, text_key)
                                                  : positions<std::uint64_t>(x, keys, number_key);
  Tensor y(values.dtype(), x.shape());
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const std::int64_t position = found[static_cast<std::size_t>(k)];
    if (position >= 0) {
      copy_element(values, position, y, k);
    } else if (!attrs.strict) {
      copy_element(op.tensor("otherwise"), 0, y, k);
    } else {
      Error error("lookup: an element is none of the keys");
      if (is_text) throw error.got("'", text_key(x, k), "' at position ", k);
      if (is_integer(x.dtype())) throw error.got(x.integer_at(k), " at position ", k);
      throw error.got(x.real_at(k), " at position ", k);
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(lookup) = OpSpec<Attrs>{
    .name = "lookup",
    .summary = "the value of the first key that equals each element of x, else `otherwise`",
    .operands = {"x", "keys", "values", optional("otherwise")},
    .results = {"y"},
    .attrs = {{"strict", &Attrs::strict}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it compares"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::lookup_op

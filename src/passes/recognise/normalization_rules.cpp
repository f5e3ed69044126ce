#include "base/error.h"
#include "passes/recognise/rules.h"
#include "passes/rewrite/facts.h"

#include <algorithm>
#include <numeric>

namespace tenon::passes::recognition {

using namespace rewrite;

namespace {

// ---- Norms over the last axes ----

// Returns the first of the axes if they are the trailing axes of x.
std::optional<std::int64_t> trailing_axis(const TensorType& x, const Dims& axes) {
  auto counted = counted_axes(axes, x.rank());
  if (!counted || x.rank() == 0) return {};
  if (counted->empty()) return 0;  // a reduction without axes reduces all
  std::sort(counted->begin(), counted->end());
  for (std::size_t k = 0; k < counted->size(); ++k) {
    const std::size_t place = x.rank() - counted->size() + k;
    if ((*counted)[k] != static_cast<std::int64_t>(place)) return {};
  }
  return counted->front();
}

// Requires statistics over the same trailing axes; sets `axis` and `epsilon` for the replacement.
bool is_over_last_axes(const Match& match, bool has_mean) {
  const TensorType* x = match.type("x");
  if (!x || !is_common_float("x")(match)) return false;
  const auto over = trailing_axis(*x, match.dims("b"));
  if (!over) return match.refuse("its statistics are not over the last axes");
  if (has_mean && trailing_axis(*x, match.dims("a")) != over) {
    return match.refuse("its mean and its variance are over different axes");
  }
  match.set("axis", Dim(*over - static_cast<std::int64_t>(x->rank())));
  match.set("epsilon", match.decimal("e"));
  return match.is_alone();
}

bool is_layer_norm(const Match& match) { return is_over_last_axes(match, true); }
bool is_rms_norm(const Match& match) { return is_over_last_axes(match, false); }

// Returns whether a scale or bias varies only along the normalized axes.
bool is_along_norm(const Match& match, std::string_view vector) {
  const TensorType *x = match.type("x"), *v = match.type(vector);
  if (!x || !v) return false;
  const auto axis = counted_axes({match.dim("axis")}, x->rank());
  if (!axis || v->rank() > x->rank()) return false;
  const std::size_t leading = x->rank() - v->rank();  // axes that the vector lacks
  for (std::size_t k = 0; k < v->rank(); ++k) {
    const bool is_normal = leading + k >= static_cast<std::size_t>(axis->front());
    if (!is_normal && !(v->dims[k] == Dim(1))) {
      return match.refuse(concat("'", match.graph().value(match.value(vector)).name,
                                 "' differs along other axes than those normalised"));
    }
  }
  return match.is_alone();
}

Condition along_norm(std::string vector) {
  return [=](const Match& match) { return is_along_norm(match, vector); };
}

bool gives_x_type(const Match& match) {
  const TensorType* x = match.type("x");
  return x && match.root_type().is_tensor() && x->dtype == match.root_type().tensor().dtype &&
         match.is_alone();
}

// ---- Norms per channel (axis 1) ----

constexpr std::size_t kChannels = 1;

// Returns the per-channel vector of a tensor that broadcasts along all other axes; invalid if it
// varies along them.
ValueId channel_vector(const Match& match, ValueId value, const TensorType& x) {
  const TensorType* type = match.type(value);
  if (!type || type->rank() > x.rank() || x.rank() <= kChannels) return {};
  const std::size_t leading = x.rank() - type->rank();
  if (leading > kChannels) return {};
  for (std::size_t k = 0; k < type->rank(); ++k) {
    const Dim& wanted = leading + k == kChannels ? x.dims[kChannels] : Dim(1);
    if (!(type->dims[k] == wanted)) return {};
  }
  const Dims dims{x.dims[kChannels]};
  // Usually it was reshaped from such a vector.
  const NodeId id = match.graph().value(value).producer;
  if (id && !match.graph().node(id).operands.empty()) {
    const Node& view = match.graph().node(id);
    const TensorType* from = match.type(view.operands.front());
    const bool is_view = view.op->name == "unsqueeze" || view.op->name == "reshape";
    if (is_view && from && from->dims == dims) return view.operands.front();
  }
  return match.make_reshape(value, dims);
}

ValueId splat_vector(const Match& match, double value, const TensorType& x) {
  if (!x.dims[kChannels].is_constant()) return {};
  return match.make_constant(
      Constant::splat(Tensor::scalar(x.dtype, value), {x.dims[kChannels].constant()}));
}

// Adds a missing scale or bias to a norm per channel.
ValueId with_vector(const Match& match, std::size_t operand, std::string_view vector) {
  const TensorType* x = match.type("x");
  const Node norm = match.node("y");
  if (!x || !match.is_alone() || norm.attrs.find("axis")) return {};
  std::vector<ValueId> operands = norm.operands;
  operands[operand] = channel_vector(match, match.value(vector), *x);
  if (!operands[operand]) return {};
  return match.make(norm.op->name, std::move(operands), norm.attrs);
}

ValueId with_scale(const Match& match) { return with_vector(match, 1, "s"); }
ValueId with_bias(const Match& match) { return with_vector(match, 2, "b"); }

// Matches a layer norm over all axes after the channels, scaled per channel.
ValueId scaled_instance_norm(const Match& match) {
  const TensorType* x = match.type("x");
  if (!x || x->rank() < 3 || !match.is_alone()) return {};
  const auto axis = counted_axes({match.dim("axis")}, x->rank());
  if (!axis || axis->front() != 2) return {};
  const ValueId scale = channel_vector(match, match.value("s"), *x);
  const ValueId bias = scale ? splat_vector(match, 0, *x) : ValueId{};
  if (!bias) return {};
  return match.make("instance_norm", {match.value("x"), scale, bias}, match.attrs("r"));
}

// Matches groups of channels reshaped to an axis of their own, normalized, and reshaped back.
ValueId group_norm(const Match& match) {
  const TensorType *x = match.type("x"), *grouped = match.type("g");
  if (!x || !grouped || x->rank() < 3 || grouped->rank() < 3 || !match.is_alone()) return {};
  if (!match.root_type().is_tensor() || !(match.root_type().tensor() == *x)) return {};
  const Dim &groups = grouped->dims[1], &channels = x->dims[kChannels];
  if (!groups.is_constant() || !channels.is_constant() || !(grouped->dims[0] == x->dims[0]))
    return {};
  if (groups.constant() < 1 || channels.constant() % groups.constant() != 0) return {};
  Attributes attrs = match.attrs("r");
  attrs.set("groups", groups);
  return match.make("group_norm",
                    {match.value("x"), splat_vector(match, 1, *x), splat_vector(match, 0, *x)},
                    std::move(attrs));
}

ValueId group_norm_of_layers(const Match& match) {
  const TensorType* grouped = match.type("g");
  if (!grouped) return {};
  const auto axis = counted_axes({match.dim("axis")}, grouped->rank());
  return axis && axis->front() == 2 ? group_norm(match) : ValueId{};
}

ValueId batch_norm(const Match& match) {
  const TensorType* x = match.type("x");
  if (!x || !is_common_float("x")(match) || !match.is_alone()) return {};
  std::vector<ValueId> operands{match.value("x")};
  for (const char* vector : {"s", "b", "m", "v"}) {
    operands.push_back(channel_vector(match, match.value(vector), *x));
    if (!operands.back()) return {};
  }
  return match.make("batch_norm", std::move(operands), {{"epsilon", match.decimal("e")}});
}

}  // namespace

std::vector<Rule> normalization_rules() {
  const std::string view = "reshape/squeeze/unsqueeze";
  const std::string mean = "m: reduce_mean(x) {axes = a}";
  const std::string variance = "reduce_mean(square(c)) {axes = b}";
  return {
      // TensorFlow's form: x * f + (bias - mean * f), where f is scale / deviation.
      {"add(mul(x, f: over_root(s, add(reduce_mean(square(sub(x, " + mean +
           "))) {axes = b}, $e))), sub(t, mul(m, f)))",
       "layer_norm(x, s, t) {axis = axis, epsilon = epsilon}", is_layer_norm},
      {"over_root(c: sub(x, " + mean + "), add(" + variance + ", $e))",
       "layer_norm(x, 1) {axis = axis, epsilon = epsilon}", is_layer_norm},
      {"mul(layer_norm(x, 1) {axis = axis, ..r}, s)", scaled_instance_norm},
      {"mul(layer_norm(x, 1) {axis = axis, ..r}, s)", "layer_norm(x, s) {axis = axis, ..r}",
       along_norm("s")},
      {"add(layer_norm(x, s) {axis = axis, ..r}, b)", "layer_norm(x, s, b) {axis = axis, ..r}",
       along_norm("b")},
      {"cast(layer_norm(cast(x) {to = f32}, 1) {..r}) {to = t}", "layer_norm(x, 1) {..r}",
       gives_x_type},

      {"over_root(x, add(reduce_mean(square(x)) {axes = b}, $e))",
       "rms_norm(x, 1) {axis = axis, epsilon = epsilon}", is_rms_norm},
      {"mul(rms_norm(x, 1) {axis = axis, ..r}, s)", "rms_norm(x, s) {axis = axis, ..r}",
       along_norm("s")},
      {"cast(rms_norm(cast(x) {to = f32}, 1) {..r}) {to = t}", "rms_norm(x, 1) {..r}",
       gives_x_type},

      {view + "(instance_norm(g: " + view + "(x) {..}, 1, 0) {..r}) {..}", group_norm},
      {view + "(layer_norm(g: " + view + "(x) {..}, 1) {axis = axis, ..r}) {..}",
       group_norm_of_layers},
      {"mul(y: instance_norm/group_norm(x, 1, 0) {..}, s)", with_scale},
      {"add(y: instance_norm/group_norm(x, _, 0) {..}, b)", with_bias},

      {"add(mul(over_root(sub(x, m), add(v, $e)), s), b)", batch_norm},
      {"add(mul(sub(x, m), over_root(s, add(v, $e))), b)", batch_norm},
  };
}

}  // namespace tenon::passes::recognition

#include "frontends/onnx/recurrent_cell.h"

#include "base/error.h"

#include <algorithm>
#include <cctype>

namespace tenon::frontends::onnx {
namespace {

struct KnownActivation {
  const char* name;  // in lower case
  const char* op;    // "" for compositions
  bool has_alpha = false, has_beta = false;
  double alpha = 0, beta = 0;
};

constexpr KnownActivation known_activations[] = {
    {"affine", "", true, true, 1, 0},
    {"elu", "elu", true, false, 1},
    {"hardsigmoid", "hard_sigmoid", true, true, 0.2, 0.5},
    {"leakyrelu", "leaky_relu", true, false, 0.01},
    {"relu", "relu"},
    {"scaledtanh", "tanh", true, true, 1, 1},
    {"sigmoid", "sigmoid"},
    {"softplus", "softplus"},
    {"softsign", "softsign"},
    {"tanh", "tanh"},
    {"thresholdedrelu", "thresholded_relu", true, false, 1},
};

const KnownActivation& find_activation(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const KnownActivation& known : known_activations) {
    if (lower == known.name) return known;
  }
  throw Error(concat("no activation is called '", name, "'"))
      .expected(
          "one of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, Softplus, "
          "Softsign, Tanh, ThresholdedRelu");
}

double next_or(const std::vector<double>& values, std::size_t& position, double otherwise) {
  return position < values.size() ? values[position++] : otherwise;
}

}  // namespace

std::vector<RecurrentActivation> read_activations(const std::vector<std::string>& names,
                                                  const std::vector<double>& alphas,
                                                  const std::vector<double>& betas) {
  std::vector<RecurrentActivation> activations;
  std::size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const KnownActivation& known = find_activation(name);
    RecurrentActivation activation{known.name, known.alpha, known.beta};
    if (known.has_alpha) activation.alpha = next_or(alphas, next_alpha, known.alpha);
    if (known.has_beta) activation.beta = next_or(betas, next_beta, known.beta);
    activations.push_back(std::move(activation));
  }
  return activations;
}

Var RecurrentCell::activate(std::size_t which, Var x) const {
  Builder& build = x.builder();
  if (clip > 0) x = build.call("clip", {x, build.scalar(-clip, x), build.scalar(clip, x)});
  const RecurrentActivation& activation = activations.at(which);
  const KnownActivation& known = find_activation(activation.name);
  if (activation.name == "affine") return x * activation.alpha + activation.beta;
  if (activation.name == "scaledtanh") {
    return build.call(known.op, {x * activation.beta}) * activation.alpha;
  }
  std::vector<Attr> attrs;
  if (known.has_alpha) attrs.emplace_back("alpha", activation.alpha);
  if (known.has_beta) attrs.emplace_back("beta", activation.beta);
  return build.call(known.op, {x}, attrs);
}

Var RecurrentCell::gate(Var gates, std::int64_t which) const {
  return gates.builder().call("slice", {gates},
                              {{"starts", Attr::Integers{which * hidden}},
                               {"ends", Attr::Integers{(which + 1) * hidden}},
                               {"axes", Attr::Integers{-1}}});
}

std::vector<Var> RecurrentCell::rnn(const CellInputs& in, const std::vector<Var>& states) const {
  Builder& build = in.projected.builder();
  return {activate(0, in.projected + build.call("matmul", {states[0], in.recurrent}))};
}

// Gates in the order update (z), reset (r), candidate.
std::vector<Var> RecurrentCell::gru(const CellInputs& in, const std::vector<Var>& states) const {
  Builder& build = in.projected.builder();
  const Var h = states[0];
  Var recurrent = build.call("matmul", {h, in.recurrent});
  if (in.recurrent_bias.is_valid()) recurrent = recurrent + in.recurrent_bias;
  const Var update = activate(0, gate(in.projected, 0) + gate(recurrent, 0));
  const Var reset = activate(0, gate(in.projected, 1) + gate(recurrent, 1));
  const Var past = resets_late ? reset * gate(recurrent, 2)
                               : build.call("matmul", {reset * h, in.recurrent_reset});
  const Var candidate = activate(1, gate(in.projected, 2) + past);
  return {(1.0 - update) * candidate + update * h};
}

// Gates in the order input (i), output (o), forget (f), cell (c); peepholes in the order i, o, f.
std::vector<Var> RecurrentCell::lstm(const CellInputs& in, const std::vector<Var>& states) const {
  Builder& build = in.projected.builder();
  const Var c = states[1];
  const Var recurrent =
      in.recurrent_scale.is_valid()
          ? dynamic_product(states[0], {in.recurrent, in.recurrent_scale, in.recurrent_zero_point})
          : build.call("matmul", {states[0], in.recurrent});
  const Var gates = in.projected + recurrent;
  const auto peep = [&](std::int64_t which, Var cell) {
    const Var sum = gate(gates, which);
    return in.peepholes.is_valid() ? sum + gate(in.peepholes, which) * cell : sum;
  };
  const Var input = activate(0, peep(0, c));
  const Var forget = couples_forget ? 1.0 - input : activate(0, peep(2, c));
  const Var cell = forget * c + input * activate(1, gate(gates, 3));
  const Var output = activate(0, peep(1, cell));
  return {output * activate(2, cell), cell};
}

}  // namespace tenon::frontends::onnx

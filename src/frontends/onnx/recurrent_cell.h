#pragma once

#include "frontends/onnx/dynamic_quantize.h"
#include "tenon/builder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::frontends::onnx {

/// An activation function of a recurrent node, by its ONNX name.
struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
};
/// Reads the activations of all directions. `names` repeats f, g, h for each direction; alphas and
/// betas are consumed in that order by the functions that have one. Throws Error for an unknown
/// name.
std::vector<RecurrentActivation> read_activations(const std::vector<std::string>& names,
                                                  const std::vector<double>& alphas,
                                                  const std::vector<double>& betas);

/// Operands of one step of a recurrent node in addition to its state; missing ones are invalid.
struct CellInputs {
  /// x W^T + Wb (+ Rb if it can be added early), [batch, gates * hidden]
  Var projected;
  /// R^T, [hidden, gates * hidden]
  Var recurrent;
  /// scale and zero point if R is in bytes: h is quantized at each step
  Var recurrent_scale, recurrent_zero_point;
  /// the candidate's part of R^T, for a GRU that resets before the product
  Var recurrent_reset;
  /// Rb, for a GRU that resets after it
  Var recurrent_bias;
  /// [3 * hidden]: of the input, output and forget gates
  Var peepholes;
};

/// The kind of cell and its attributes.
struct RecurrentCell {
  std::int64_t hidden = 0;
  /// of this direction
  std::vector<RecurrentActivation> activations;
  /// 0: unlimited
  double clip = 0;
  /// GRU: linear_before_reset
  bool resets_late = false;
  /// LSTM: input_forget
  bool couples_forget = false;

  /// Returns the states after one step from the previous ones: {h} for RNN and GRU, {h, c} for
  /// LSTM.
  using Step = std::vector<Var> (RecurrentCell::*)(const CellInputs&,
                                                   const std::vector<Var>& states) const;
  std::vector<Var> rnn(const CellInputs& in, const std::vector<Var>& states) const;
  std::vector<Var> gru(const CellInputs& in, const std::vector<Var>& states) const;
  std::vector<Var> lstm(const CellInputs& in, const std::vector<Var>& states) const;

 private:
  Var activate(std::size_t which, Var x) const;
  Var gate(Var gates, std::int64_t which) const;
};

}  // namespace tenon::frontends::onnx

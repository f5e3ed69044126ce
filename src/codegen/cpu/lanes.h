#pragma once

#include "expr/expr.h"

#include <llvm/IR/IRBuilder.h>

#include <functional>

namespace tenon::codegen::cpu {

/// Returns whether the type is a float of at most eight bits.
bool is_narrow_float(DType dtype);

/// A vector value in compact form: uniform over lanes, a linear ramp, or a general vector.
struct Lanes {
  enum class Form : std::uint8_t { Uniform, Ramp, Vector };
  /// A scalar (Ramp: of lane 0), or a vector.
  llvm::Value* value = nullptr;
  Form form = Form::Uniform;
  /// Ramp: increment between lanes.
  std::int64_t step = 0;

  bool is_uniform() const { return form == Form::Uniform; }
};

/// Emits vector arithmetic with the semantics of the reference: integers wrap; narrow floats are
/// computed in f32 and rounded when stored or cast.
class LaneMath {
 public:
  /// `has_avx512` allows AVX-512's scalef and rcp14 instructions.
  LaneMath(llvm::IRBuilder<>& ir, llvm::Module& module, bool has_avx512)
      : ir_(ir), module_(module), has_avx512_(has_avx512) {}

  /// Sets the vector width; 1 makes all values uniform.
  void set_width(unsigned width) { width_ = width; }
  unsigned width() const { return width_; }

  /// The type in which an element type is computed.
  llvm::Type* type(DType dtype) const;
  /// The type of an element in memory.
  llvm::Type* stored_type(DType dtype) const;
  llvm::Type* lanes_of(llvm::Type* scalar) const;

  Lanes uniform(llvm::Value* value) const { return {value, Lanes::Form::Uniform, 0}; }
  Lanes integer(std::int64_t value) const {
    return uniform(ir_.getInt64(static_cast<std::uint64_t>(value)));
  }
  Lanes literal(DType dtype, double real, std::int64_t integer) const;
  /// Materializes a vector (a scalar for width 1).
  llvm::Value* vector(const Lanes& lanes);

  Lanes unary(UnaryOp op, DType dtype, const Lanes& x);
  Lanes binary(BinaryOp op, DType dtype, const Lanes& a, const Lanes& b);
  /// For f32.
  Lanes one_plus_erf(const Lanes& x);
  /// a / b in f32 with an error slightly above one ulp, for b >= 1 or NaN.
  Lanes divide_by_large(const Lanes& a, const Lanes& b);
  Lanes select(const Lanes& condition, const Lanes& a, const Lanes& b);
  Lanes cast(const Lanes& x, DType from, DType to);
  /// total + a * b with a single rounding (FMA).
  Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& total);
  Lanes combine(Reduction reduction, DType dtype, const Lanes& total, const Lanes& next);
  /// Reduces all lanes of a vector to a scalar.
  llvm::Value* fold(Reduction reduction, DType dtype, llvm::Value* vector);

  /// Converts between computed and stored types.
  llvm::Value* from_stored(DType dtype, llvm::Value* stored);
  /// Values out of an 8-bit float's range become infinite (NaN without an infinity), or the
  /// greatest finite number if `saturates`.
  llvm::Value* to_stored(DType dtype, llvm::Value* value, bool saturates = false);

 private:
  // Operands in a common form: both scalars or both vectors.
  struct Pair {
    llvm::Value *a, *b;
    bool is_uniform;
  };
  Pair matched(const Lanes& a, const Lanes& b);
  Lanes made(llvm::Value* value, bool is_uniform) const {
    return {value, is_uniform || width_ == 1 ? Lanes::Form::Uniform : Lanes::Form::Vector, 0};
  }
  llvm::Value* splat(llvm::Value* value) const;
  llvm::Value* like(llvm::Value* shape, llvm::Constant* scalar) const;
  llvm::Value* real(llvm::Value* shape, double number) const;
  llvm::Value* whole(llvm::Value* shape, std::int64_t number) const;

  llvm::Value* real_unary(UnaryOp op, DType dtype, llvm::Value* x);
  llvm::Value* integer_unary(UnaryOp op, DType dtype, llvm::Value* x);
  llvm::Value* real_binary(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_binary(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(BinaryOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* power_of_integers(DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(bool is_max, llvm::Value* a, llvm::Value* b);

  // Elementary functions on f32 lanes, by polynomials.
  llvm::Value* exp32(llvm::Value* x);
  llvm::Value* exp_within(llvm::Value* x, bool is_normal = false);
  llvm::Value* quotient(llvm::Value* a, llvm::Value* b);
  llvm::Value* by_registers(std::initializer_list<llvm::Value*> args,
                            const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& one);
  llvm::Value* log32(llvm::Value* x);
  llvm::Value* tanh32(llvm::Value* x);
  llvm::Value* erf32(llvm::Value* x);
  llvm::Value* one_plus_erf32(llvm::Value* x);
  llvm::Value* polynomial(llvm::Value* x, std::initializer_list<double> coefficients);
  llvm::Value* fused_multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// Calls a function of the C library lane by lane, in double.
  llvm::Value* library(std::string_view name, std::initializer_list<llvm::Value*> args);

  llvm::Value* from_narrow_float(DType dtype, llvm::Value* stored);
  llvm::Value* to_narrow_float(DType dtype, llvm::Value* value, bool saturates);

  llvm::IRBuilder<>& ir_;
  llvm::Module& module_;
  unsigned width_ = 1;
  bool has_avx512_ = false;
};

}  // namespace tenon::codegen::cpu

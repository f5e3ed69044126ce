#pragma once

#include "ops/expr.h"

#include <llvm/IR/IRBuilder.h>

#include <functional>

namespace tenon::codegen::cpu {

/// Whether it is a float of eight bits or fewer.
bool is_narrow_float(DType dtype);

/// A number in every lane of a vector: the same in each, evenly rising, or any.
struct Lanes {
  enum class Form : std::uint8_t { Uniform, Ramp, Vector };
  /// one number (Ramp: that of lane 0), or a vector
  llvm::Value* value = nullptr;
  Form form = Form::Uniform;
  /// Ramp: from one lane to the next
  std::int64_t step = 0;

  bool is_uniform() const { return form == Form::Uniform; }
};

/// Writes arithmetic on lanes, with the meaning it has in the reference: integers wrap, narrow
/// floats are computed in f32 and rounded when they are stored or cast to.
class LaneMath {
 public:
  /// `has_avx512`: the code may use AVX-512's instructions for powers of two and reciprocals.
  LaneMath(llvm::IRBuilder<>& ir, llvm::Module& module, bool has_avx512)
      : ir_(ir), module_(module), has_avx512_(has_avx512) {}

  /// How many lanes there are from here on; 1 makes everything uniform.
  void set_width(unsigned width) { width_ = width; }
  unsigned width() const { return width_; }

  /// What a number of this element type is computed as.
  llvm::Type* type(DType dtype) const;
  /// What it is in memory.
  llvm::Type* stored_type(DType dtype) const;
  llvm::Type* lanes_of(llvm::Type* scalar) const;

  Lanes uniform(llvm::Value* value) const { return {value, Lanes::Form::Uniform, 0}; }
  Lanes integer(std::int64_t value) const {
    return uniform(ir_.getInt64(static_cast<std::uint64_t>(value)));
  }
  Lanes literal(DType dtype, double real, std::int64_t integer) const;
  /// As a vector (as one number where there is one lane).
  llvm::Value* vector(const Lanes& lanes);

  Lanes unary(UnaryOp op, DType dtype, const Lanes& x);
  Lanes binary(BinaryOp op, DType dtype, const Lanes& a, const Lanes& b);
  /// of f32
  Lanes one_plus_erf(const Lanes& x);
  /// a / b of f32, within a unit in the last place and a bit, where b is no less than 1, or NaN.
  Lanes divide_by_large(const Lanes& a, const Lanes& b);
  Lanes select(const Lanes& condition, const Lanes& a, const Lanes& b);
  Lanes cast(const Lanes& x, DType from, DType to);
  /// total + a * b, rounded once.
  Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& total);
  Lanes combine(Reduction reduction, DType dtype, const Lanes& total, const Lanes& next);
  /// All lanes of a vector combined into one.
  llvm::Value* fold(Reduction reduction, DType dtype, llvm::Value* vector);

  /// Between what is computed and what is in memory.
  llvm::Value* from_stored(DType dtype, llvm::Value* stored);
  /// What is too large for eight bits becomes infinite (NaN where there is none), or the greatest
  /// number.
  llvm::Value* to_stored(DType dtype, llvm::Value* value, bool saturates = false);

 private:
  // Operands in one form: both single numbers, or both vectors.
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

  // Functions of real numbers on f32 lanes, by polynomials.
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
  /// Lane by lane through a function of the C library, in double.
  llvm::Value* library(std::string_view name, std::initializer_list<llvm::Value*> args);

  llvm::Value* from_narrow_float(DType dtype, llvm::Value* stored);
  llvm::Value* to_narrow_float(DType dtype, llvm::Value* value, bool saturates);

  llvm::IRBuilder<>& ir_;
  llvm::Module& module_;
  unsigned width_ = 1;
  bool has_avx512_ = false;
};

}  // namespace tenon::codegen::cpu

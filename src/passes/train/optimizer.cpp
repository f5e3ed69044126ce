#include "base/error.h"
#include "base/text.h"
#include "ops/definition/elementwise.h"
#include "passes/train/step_builder.h"

#include <algorithm>
#include <limits>

namespace tenon::passes {

const std::vector<std::string>& optimizer_kinds() {
  static const std::vector<std::string> kinds = {"sgd",     "momentum", "nesterov", "rmsprop",
                                                 "adagrad", "adam",     "adamw",    "lamb"};
  return kinds;
}

}  // namespace tenon::passes

namespace tenon::passes::training {
namespace {

// Dynamic loss scaling: halves the scale after a non-finite gradient, doubles it after kPatience
// good steps.
constexpr double kFirstScale = 65536, kMostScale = 16777216;
constexpr int kPatience = 2000;

Var total_of(Var x) { return call("reduce_sum", {x}, {{"keep_axes", false}}); }
Var root(Var x) { return call("sqrt", {x}); }

// The optimizer updates of one step; the learning rate and the powers of the betas are shared by
// all parameters.
class Updates {
 public:
  Updates(Draft& draft, Builder& build, const TrainOptions& options, Var step, Var is_good)
      : draft_(draft),
        build_(build),
        options_(options.optimizer),
        state_ranks_(options.state_ranks),
        is_good_(is_good),
        rate_(scheduled_rate(options.schedule, step)) {
    const std::string& kind = options_.kind;
    if (kind != "adam" && kind != "adamw" && kind != "lamb") return;
    const Var count = cast_to(step, DType::F64) + 1.0;  // 1 - beta^count cancels in f32
    const auto correction = [&](double beta) {
      return 1.0 - call("pow", {number(beta, count), count});
    };
    mean_correction_ = correction(options_.beta1);
    square_correction_ = correction(options_.beta2);
  }

  void add(const Update& update) {
    state_ = update.state;
    x_ = draft_.now(build_, state_);
    dtype_ = build_.type(x_).tensor().dtype;
    const std::string& kind = options_.kind;
    const bool decays_itself = kind == "adamw" || kind == "lamb";
    Var g = update.gradient;
    if (options_.weight_decay != 0 && !decays_itself) g = g + x_ * options_.weight_decay;
    set_next(state_, moved(kind, g));
  }

 private:
  Var rate() const { return cast_to(rate_, dtype_); }

  Var moved(const std::string& kind, Var g) {
    if (kind == "sgd") return x_ - g * rate();
    if (kind == "momentum" || kind == "nesterov") {
      const Var velocity =
          remember("velocity", [&](Var before) { return before * options_.momentum + g; });
      return x_ - (kind == "nesterov" ? g + velocity * options_.momentum : velocity) * rate();
    }
    if (kind == "rmsprop")
      return x_ - g / (root(average("squares", g * g, options_.beta2)) + options_.epsilon) * rate();
    if (kind == "adagrad") {
      const Var squares = remember("squares", [&](Var before) { return before + g * g; });
      return x_ - g / (root(squares) + options_.epsilon) * rate();
    }
    const Var mean = average("mean", g, options_.beta1) / cast_to(mean_correction_, dtype_);
    const Var squares =
        average("squares", g * g, options_.beta2) / cast_to(square_correction_, dtype_);
    const Var direction = mean / (root(squares) + options_.epsilon);
    if (kind == "adam") return x_ - direction * rate();
    if (kind == "adamw") return x_ - (direction + x_ * options_.weight_decay) * rate();
    return x_ - lamb_move(options_.weight_decay == 0 ? direction
                                                     : direction + x_ * options_.weight_decay) *
                    rate();
  }

  // LAMB's trust ratio (You et al. 2020): scales the update to the norm of the parameter unless
  // either norm is zero.
  Var lamb_move(Var direction) {
    const Var length = root(total_of(x_ * x_)), move = root(total_of(direction * direction));
    const Var is_plain = call("logical_or", {call("equal", {length, number(0, length)}),
                                             call("equal", {move, number(0, move)})});
    return direction * choose(is_plain, 1, length / move);
  }

  Var average(const char* what, Var value, double beta) {
    return remember(what, [&](Var before) { return before * beta + value * (1 - beta); });
  }

  template <class Next>
  Var remember(const char* what, Next next) {
    const Draft::DraftState& held = draft_.states[state_];
    const std::string& owner = held.split ? held.split->whole : held.name;
    const std::string name = build_.graph().free_name(concat(owner, "/", what));
    const Constant zeros =
        Constant::splat(Tensor::scalar(held.initial.dtype(), 0), held.initial.shape());
    const std::size_t memory = held.split ? draft_.add_split_state(name, name, zeros, state_ranks_)
                                          : draft_.add_state(name, zeros);
    const Var value = next(draft_.now(build_, memory));
    set_next(memory, value);
    return value;
  }

  // Skips the update of a step whose gradients overflowed.
  void set_next(std::size_t state, Var value) {
    if (is_good_.is_valid()) {
      value = choose(is_good_, value, draft_.now(build_, state));
    }
    draft_.set_next(state, value);
  }

  Draft& draft_;
  Builder& build_;
  const OptimizerOptions& options_;
  std::int64_t state_ranks_;
  Var is_good_, rate_, mean_correction_, square_correction_;
  std::size_t state_ = 0;
  Var x_;
  DType dtype_ = DType::F32;
};

Var norm_of(const std::vector<Update>& updates) {
  Var total;
  for (const Update& update : updates) {
    const Var wide = cast_to(update.gradient, DType::F32);
    const Var squares = total_of(wide * wide);
    total = total.is_valid() ? total + squares : squares;
  }
  return root(total);
}

Var all_finite(Builder& build, const std::vector<Update>& updates) {
  Var all;
  for (const Update& update : updates) {
    const Var largest = cast_to(
        call("reduce_max", {call("abs", {update.gradient})}, {{"keep_axes", false}}), DType::F32);
    const Var is_finite =
        call("less", {largest, build.scalar(std::numeric_limits<double>::infinity(), largest)});
    all = all.is_valid() ? call("logical_and", {all, is_finite}) : is_finite;
  }
  return all;
}

// Computes the loss scale of the next step.
void adjust_scale(Draft& draft, Builder& build, Var scale, Var is_good) {
  const auto scale_state = static_cast<std::size_t>(
      std::ranges::find(draft.states, ValueId(scale.id()), &Draft::DraftState::now) -
      draft.states.begin());
  const std::size_t count_state =
      draft.add_state("train/good_steps", Constant(Tensor(DType::I64, {})));
  const Var good = choose(is_good, draft.now(build, count_state) + 1.0, 0.0);
  const Var may_grow = call("greater_equal", {good, number(kPatience, good)});
  const Var grown = call("minimum", {scale * 2.0, number(kMostScale, scale)});
  const Var shrunk = call("maximum", {scale * 0.5, number(1, scale)});
  draft.set_next(scale_state, choose(is_good, choose(may_grow, grown, scale), shrunk));
  draft.set_next(count_state, choose(may_grow, 0.0, good));
}

}  // namespace

Var loss_scale(Draft& draft, Builder& build, const OptimizerOptions& options) {
  if (options.loss_scale == 0) return {};
  if (options.loss_scale > 0) return build.constant(Tensor::scalar(DType::F32, options.loss_scale));
  return draft.now(build, draft.add_state("train/loss_scale",
                                          Constant(Tensor::scalar(DType::F32, kFirstScale))));
}

void add_updates(Draft& draft, Builder& build, const TrainOptions& options,
                 const std::vector<Update>& given, Var step, Var scale) {
  const std::string& kind = options.optimizer.kind;
  if (std::ranges::find(optimizer_kinds(), kind) == optimizer_kinds().end()) {
    throw Error(concat("no optimizer is called '", kind, "'"), ErrorKind::Usage)
        .hint(suggest_name(kind, optimizer_kinds()));
  }
  std::vector<Update> updates = given;
  Var is_good;
  if (scale.is_valid()) {
    if (options.optimizer.loss_scale < 0) is_good = all_finite(build, updates);
    for (Update& update : updates) {
      update.gradient =
          update.gradient / cast_to(scale, build.type(update.gradient).tensor().dtype);
    }
  }
  if (options.optimizer.clip_norm > 0) {
    const Var norm = norm_of(updates);
    const Var limit = number(options.optimizer.clip_norm, norm);
    const Var factor = limit / call("maximum", {norm, limit});
    for (Update& update : updates) {
      update.gradient =
          update.gradient * cast_to(factor, build.type(update.gradient).tensor().dtype);
    }
  }
  Updates all(draft, build, options, step, is_good);
  for (const Update& update : updates) all.add(update);
  if (is_good.is_valid()) adjust_scale(draft, build, scale, is_good);
}

}  // namespace tenon::passes::training

#include "base/error.h"
#include "ops/definition/elementwise.h"
#include "ops/definition/var_ops.h"
#include "passes/train/step_builder.h"

namespace tenon::passes::training {
namespace {

using Integers = Attr::Integers;

// Stand-in for log(0): finite, so that no difference is NaN, and far below any sum of scores.
constexpr double kNever = -1e30;

Var slice(Var x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return x.builder().call(
      "slice", {x},
      {{"starts", Integers{begin}}, {"ends", Integers{end}}, {"axes", Integers{axis}}});
}

// Shifts columns up by `count`; the first ones become `filling`.
Var moved(Var x, std::int64_t count, double filling) {
  Builder& build = x.builder();
  const Dims dims = build.type(x).tensor().dims;
  const Var front = expand_to(build.scalar(filling, x), {dims[0], Dim(count)});
  return build.call("concat", {front, slice(x, 1, 0, -count)}, {{"axis", 1}});
}

Var log_sum(Var a, Var b, Var c) {
  Builder& build = a.builder();
  const Var most = build.call("maximum", {build.call("maximum", {a, b}), c});
  const auto share = [&](Var x) { return build.call("exp", {x - most}); };
  return most + build.call("log", {share(a) + share(b) + share(c)});
}

// One step of the forward recursion: the log-likelihood at each position between labels. `penalty`
// is zero where a blank may be skipped.
Graph step(const TensorType& places) {
  Builder build("step");
  const Var before = build.input("before", Type(places));
  const Var emitted = build.input("emitted", Type(places));
  const Var penalty = build.input("penalty", Type(places));
  const Var next = log_sum(before, moved(before, 1, kNever), moved(before, 2, kNever) + penalty);
  build.output(next + emitted, "next");
  return build.take();
}

struct CtcExtents {
  Dim samples, steps;
};

CtcExtents extents_of(Builder& build, Var scores, const LossOptions& options) {
  const TensorType type = build.type(scores).tensor();
  if (type.rank() != 3 || options.time_axis < 0 || options.time_axis > 1) {
    throw Error("ctc: scores have the axes of samples, steps and classes", ErrorKind::Usage)
        .expected("[samples, steps, classes], or with time=0 [steps, samples, classes]")
        .got(type, ", time=", options.time_axis);
  }
  if (options.label_count < 1) {
    throw Error("ctc: how many labels a sample may have is to be said", ErrorKind::Usage)
        .hint("give --loss=ctc,labels=COUNT, the width of the array 'target'");
  }
  const Dim& classes = type.dims[2];
  const auto time = static_cast<std::size_t>(options.time_axis);
  if (classes.is_constant() && options.blank >= classes.constant()) {
    throw Error("ctc: the blank is no class of the model", ErrorKind::Usage)
        .expected("0 to ", classes - 1)
        .got(options.blank);
  }
  return {type.dims[1 - time], type.dims[time]};
}

}  // namespace

// CTC forward algorithm in log space (Graves and others, 2006): positions are the labels with
// blanks before, between and after them.
Loss add_ctc_loss(Builder& build, Var scores, const LossOptions& options, bool is_each) {
  const CtcExtents extents = extents_of(build, scores, options);
  if (info(build.type(scores).tensor().dtype).bits < 32) scores = cast_to(scores, DType::F32);
  const DType dtype = build.type(scores).tensor().dtype;
  const Dim& samples = extents.samples;
  const std::int64_t labels = options.label_count, places = 2 * labels + 1;
  const Var target = build.input(kTarget, Type(TensorType{DType::I64, {samples, Dim(labels)}, {}}));
  if (options.time_axis == 1)
    scores = build.call("transpose", {scores}, {{"perm", Integers{1, 0, 2}}});
  const Var likely = build.call("log_softmax", {scores}, {{"axis", 2}});

  const Var is_label = build.call("greater_equal", {target, build.scalar(0, target)});
  const Var blank = build.scalar(static_cast<double>(options.blank), target);
  const Var label = build.call("where", {is_label, target, blank});
  const Var blanks = expand_to(blank, {samples, Dim(labels)});
  const auto stacked = [&](Var x) { return reshape_to(x, {samples, Dim(labels), 1}); };
  const Var pairs = build.call("concat", {stacked(blanks), stacked(label)}, {{"axis", 2}});
  const Var wanted = build.call(
      "concat", {reshape_to(pairs, {samples, Dim(2 * labels)}), expand_to(blank, {samples, 1})},
      {{"axis", 1}});
  const Dims all{extents.steps, samples, Dim(places)};
  const Var emitted =
      build.call("gather_elements", {likely, expand_to(wanted, all)}, {{"axis", 2}});

  // A blank between two different labels may be skipped.
  const Var differs =
      build.call("logical_not", {build.call("equal", {wanted, moved(wanted, 2, -1)})});
  const Var is_blank = build.call("equal", {wanted, blank});
  const Var may_skip = build.call("logical_and", {differs, build.call("logical_not", {is_blank})});
  const Var never = build.constant(Tensor::scalar(dtype, kNever));
  const Var penalty = build.call("where", {may_skip, build.scalar(0, never), never});
  std::vector<double> start(static_cast<std::size_t>(places), kNever);
  start.front() = 0;  // starts at the first blank or the first label
  const Var first =
      expand_to(build.constant(Tensor::of(dtype, {places}, start)), {samples, Dim(places)});
  std::vector<Graph> bodies;
  bodies.push_back(step(TensorType{dtype, {samples, Dim(places)}, {}}));
  const Var last = build
                       .call_all("scan", {first, emitted, penalty},
                                 std::vector<Attr>{{"state_count", 1}, {"input_count", 1}}, {""},
                                 std::move(bodies))
                       .front();

  const Var count = build.call("reduce_sum", {cast_to(is_label, DType::I64)},
                               {{"axes", Integers{1}}, {"keep_axes", true}});
  Integers numbers;
  for (std::int64_t place = 0; place < places; ++place) numbers.push_back(place);
  const Var place = build.integers(numbers);
  const Var end = count + count;
  const Var ends = build.call(
      "logical_or", {build.call("equal", {place, end}), build.call("equal", {place, end - 1.0})});
  const Var likelihood =
      build.call("reduce_log_sum_exp", {build.call("where", {ends, last, never})},
                 {{"axes", Integers{1}}, {"keep_axes", false}});
  Var losses = -likelihood;
  if (!options.is_sum) {
    const Var at_least_one = build.call("maximum", {count, build.scalar(1, count)});
    losses = losses / reshape_to(cast_to(at_least_one, dtype), {samples});
  }
  if (is_each) return {losses, {}};
  return {
      build.call(options.is_sum ? "reduce_sum" : "reduce_mean", {losses}, {{"keep_axes", false}}),
      {}};
}

}  // namespace tenon::passes::training

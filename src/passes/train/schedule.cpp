#include "base/error.h"
#include "base/text.h"
#include "ops/definition/elementwise.h"
#include "passes/train/step_builder.h"

#include <numbers>

namespace tenon::passes {

const std::vector<std::string>& schedule_kinds() {
  static const std::vector<std::string> kinds = {"constant", "step", "cosine"};
  return kinds;
}

}  // namespace tenon::passes

namespace tenon::passes::training {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw Error(concat("schedule: ", what), ErrorKind::Usage);
}

}  // namespace

Var scheduled_rate(const ScheduleOptions& options, Var step) {
  require(options.rate > 0, "the rate must be positive");
  require(options.warm_up >= 0, "the warm-up cannot be negative");
  const Var at = cast_to(step, DType::F64);
  Var rate = number(options.rate, at);
  if (options.kind == "step") {
    require(options.every >= 1, "the rate must fall every so many steps, at least 1");
    const Var falls = call("floor", {at / static_cast<double>(options.every)});
    rate = rate * call("pow", {number(options.factor, at), falls});
  } else if (options.kind == "cosine") {
    require(options.total > options.warm_up, "the cosine must end after the warm-up");
    const auto length = static_cast<double>(options.total - options.warm_up);
    const Var done = call("clip", {(at - static_cast<double>(options.warm_up)) / length,
                                   number(0, at), number(1, at)});
    const Var wave = (call("cos", {done * std::numbers::pi}) + 1.0) * 0.5;
    rate = rate * (wave * (1 - options.floor) + options.floor);
  } else if (options.kind != "constant") {
    throw Error(concat("no schedule is called '", options.kind, "'"), ErrorKind::Usage)
        .hint(suggest_name(options.kind, schedule_kinds()));
  }
  if (options.warm_up == 0) return rate;
  const Var warmth =
      call("minimum", {(at + 1.0) / static_cast<double>(options.warm_up), number(1, at)});
  return rate * warmth;
}

}  // namespace tenon::passes::training

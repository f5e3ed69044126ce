#include "train/options.h"

#include "base/error.h"
#include "base/text.h"
#include "models/inputs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace tenon::train {
namespace {

// A kind and settings, `kind,name=value,…`.
class OptionSettings {
 public:
  using Setter = std::function<void(const std::string& value)>;

  OptionSettings(std::string what, const std::vector<std::string>& kinds, std::string& kind)
      : what_(std::move(what)), kinds_(kinds), kind_(kind) {}

  void real(const std::string& name, double& field, double low = 0) {
    setters_[name] = [this, name, &field, low](const std::string& value) {
      const std::optional<double> number = parse_real(value);
      if (!number || !(*number >= low) || std::isinf(*number))
        refuse(name, value, concat("a number from ", format_real(low)));
      field = *number;
    };
  }
  void integer(const std::string& name, std::int64_t& field, std::int64_t low) {
    setters_[name] = [this, name, &field, low](const std::string& value) {
      const std::optional<std::int64_t> number = parse_integer(value);
      if (!number || *number < low) refuse(name, value, concat("a whole number from ", low));
      field = *number;
    };
  }
  void other(const std::string& name, Setter setter) { setters_[name] = std::move(setter); }

  void read(const std::string& text) {
    bool is_first = true;
    for (const std::string& part : split(text, ',')) {
      const std::string word(trim(part));
      const std::size_t mark = word.find('=');
      if (std::exchange(is_first, false) && mark == std::string::npos) {
        if (std::ranges::find(kinds_, word) == kinds_.end()) {
          throw Error(concat("no ", what_, " is called '", word, "'"), ErrorKind::Usage)
              .hint(suggest_name(word, kinds_));
        }
        kind_ = word;
        continue;
      }
      const std::string name = word.substr(0, mark);
      const auto setter = setters_.find(name);
      if (mark == std::string::npos || setter == setters_.end()) {
        std::vector<std::string> known;
        for (const auto& [other, set] : setters_) known.push_back(other);
        throw Error(concat("the ", what_, " has no setting '", name, "'"), ErrorKind::Usage)
            .expected("NAME=VALUE")
            .hint(suggest_name(name, known));
      }
      setter->second(word.substr(mark + 1));
    }
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& value,
                           const std::string& expected) const {
    throw Error(concat("'", name, "' of the ", what_, " cannot be '", value, "'"), ErrorKind::Usage)
        .expected(expected);
  }

 private:
  std::string what_;
  const std::vector<std::string>& kinds_;
  std::string& kind_;
  std::map<std::string, Setter> setters_;
};

}  // namespace

void set_loss(passes::LossOptions& options, const std::string& text) {
  OptionSettings settings("loss", passes::loss_kinds(), options.kind);
  settings.integer("axis", options.axis, std::numeric_limits<std::int64_t>::min());
  settings.real("delta", options.delta);
  settings.integer("time", options.time_axis, 0);
  settings.integer("labels", options.label_count, 1);
  settings.integer("blank", options.blank, 0);
  settings.other("output", [&](const std::string& value) { options.output = value; });
  settings.other("ignore", [&](const std::string& value) {
    options.ignore_label = parse_integer(value);
    if (!options.ignore_label) settings.refuse("ignore", value, "a label");
  });
  settings.other("reduction", [&](const std::string& value) {
    if (value != "mean" && value != "sum") settings.refuse("reduction", value, "mean or sum");
    options.is_sum = value == "sum";
  });
  settings.other("weights", [&](const std::string& value) {
    options.class_weights.clear();
    for (const std::string& part : split(value, ':')) {
      const std::optional<double> weight = parse_real(part);
      if (!weight || !(*weight >= 0))
        settings.refuse("weights", value, "a number from 0 for each class, as 1:2:0.5");
      options.class_weights.push_back(*weight);
    }
  });
  settings.read(text);
}

void set_optimizer(passes::TrainOptions& options, const std::string& text) {
  passes::OptimizerOptions& optimizer = options.optimizer;
  OptionSettings settings("optimizer", passes::optimizer_kinds(), optimizer.kind);
  settings.real("lr", options.schedule.rate);
  settings.real("momentum", optimizer.momentum);  // op-name: a setting, not an op
  settings.real("beta1", optimizer.beta1);
  settings.real("beta2", optimizer.beta2);
  settings.real("epsilon", optimizer.epsilon);
  settings.real("weight_decay", optimizer.weight_decay);
  settings.real("clip", optimizer.clip_norm);
  settings.other("loss_scale", [&](const std::string& value) {
    const std::optional<double> scale = parse_real(value);
    if (value != "auto" && (!scale || !(*scale > 0)))
      settings.refuse("loss_scale", value, "a positive number, or auto");
    optimizer.loss_scale = value == "auto" ? -1 : *scale;
  });
  settings.read(text);
}

void set_schedule(passes::ScheduleOptions& options, const std::string& text) {
  OptionSettings settings("schedule", passes::schedule_kinds(), options.kind);
  settings.integer("warm_up", options.warm_up, 0);
  settings.integer("every", options.every, 1);
  settings.integer("total", options.total, 1);
  settings.real("factor", options.factor);
  settings.real("floor", options.floor);
  settings.read(text);
}

namespace {

passes::TrainOptions options_of(const std::string& optimizer, const std::string& loss) {
  passes::TrainOptions options;
  set_optimizer(options, optimizer);
  if (!loss.empty()) set_loss(options.loss, loss);
  return options;
}

}  // namespace

passes::StatefulGraph training_step(Graph model, const std::string& optimizer,
                                    const std::string& loss,
                                    const std::map<std::string, Shape>& shapes) {
  if (optimizer.empty()) return {std::move(model), {}};
  const DimBindings extents = models::symbol_values(model, shapes);
  return passes::train(passes::with_symbols(std::move(model), extents),
                       options_of(optimizer, loss));
}

planning::SplitStep split_training_step(Graph model, const std::string& optimizer,
                                        const std::string& loss,
                                        const std::map<std::string, Shape>& shapes) {
  if (optimizer.empty()) return {};
  const DimBindings extents = models::symbol_values(model, shapes);
  return planning::split_of(passes::with_symbols(std::move(model), extents),
                            options_of(optimizer, loss));
}

}  // namespace tenon::train

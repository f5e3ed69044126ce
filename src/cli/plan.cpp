#include "cli/plan.h"

#include "app/targets.h"
#include "base/error.h"
#include "base/interrupted.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/plan_progress.h"
#include "cli/table.h"
#include "driver/compile.h"
#include "memory/lower_sets.h"
#include "memory/map_html.h"
#include "memory/order.h"
#include "memory/peak.h"
#include "memory/search.h"
#include "memory/size_text.h"
#include "models/model.h"
#include "models/rebatch.h"
#include "planning/budget.h"
#include "planning/problem_of.h"
#include "planning/swap_link.h"
#include "train/options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxMicroBatches = 16;
constexpr std::uint64_t kPlaceWork = 100'000'000;  // nodes of a search times items

std::string percent(double part) { return fmt::format("{:.3f} %", 100 * part); }

memory::DeviceSpec device_of(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("a description of a device cannot be read", ErrorKind::Usage).got(path);
  std::ostringstream text;
  text << file.rdbuf();
  return memory::parse_device(text.str(), path);
}

void write_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

class PlanCommand {
 public:
  PlanCommand(const PlanOptions& options, OutputFormat format)
      : options_(options), format_(format), device_(device_of(options.device)) {
    const documents::RunReading reading{options.reading == "tags", options.reading == "fused"};
    if (options.reading != "retained" && !reading.uses_tags && !reading.is_fused) {
      throw Error(concat("no reading is called '", options.reading, "'"), ErrorKind::Usage)
          .hint(
              suggest_name(options.reading, std::vector<std::string>{"retained", "tags", "fused"}));
    }
    const auto method = memory::parse_method(options.method);
    if (!method) {
      throw Error(concat("no method of planning is called '", options.method, "'"),
                  ErrorKind::Usage)
          .hint(suggest_name(options.method, memory::method_names()));
    }
    method_ = *method;
    if (method_ != memory::Method::Search && (options.swap || options.split)) {
      throw Error("the methods of others only recompute", ErrorKind::Usage)
          .got("--method=", options.method)
          .hint("leave out --swap and --split, or --method");
    }
    const bool is_compiled_here = !options.train.empty() && options.device.empty();
    if (options.swap && !device_.link && !is_compiled_here) {
      throw Error("swapping needs a device with a link", ErrorKind::Usage)
          .hint("give one with --device=FILE; examples/devices has some");
    }
    if (options.alignment == 0) throw Error("an alignment is a positive number", ErrorKind::Usage);
    place_.alignment = options.alignment;
    source_ = options.train.empty()
                  ? planning::plan_source(options.model, reading, device_, options.batch)
                  : compiled_step();
    orders_ = prepared(source_.problem);
    source_.problem = orders_.front();
    split_.resize(source_.split.size());
    base_seconds_ = source_.problem.seconds();
    memory::PlaceOptions thorough = place_;
    thorough.node_limit = std::min<std::uint64_t>(
        thorough.node_limit, kPlaceWork / std::max<std::size_t>(source_.problem.items.size(), 1));
    plain_ = memory::planned(source_.problem, memory::plain_events(source_.problem), thorough,
                             in_place());
    bound_bytes_ = memory::largest_working_set_bytes(source_.problem);
    order_bound_bytes_ = memory::order_bound_bytes(source_.problem, in_place());
  }

  int run() {
    if (options_.frontier) return frontier();
    if (options_.compare) return compare();
    if (options_.budget.empty()) {
      report(source_.problem, plain_, 1, {}, nullptr);
      return 0;
    }
    const std::uint64_t budget = planning::arena_budget(options_.budget, plain_.arena_bytes, 0);
    progress_.begin(options_.budget, base_seconds_);
    Found found = plan_within(budget);
    was_stopped_ = progress_.end();
    if (!found.result.is_within_budget) {
      if (was_stopped_) throw Interrupted();
      refuse(budget, found);
    }
    report(*found.problem, found.result.plan, found.micro_batches, budget, &found.result);
    return 0;
  }

 private:
  struct Found {
    const memory::Problem* problem = nullptr;
    memory::SearchResult result;
    int micro_batches = 1;
    double overhead = 0;
  };

  TargetSpec planned_target() const {
    return app::target_of(options_.target, "native", options_.precision);
  }
  std::string device_name() const {
    if (options_.train.empty() || !options_.device.empty()) return device_.name;
    const TargetSpec target = planned_target();
    return target.is_gpu() ? to_string(target) : "this machine";
  }

  // A compiled training step: kernels chosen, their workspace included. Its micro-batches are
  // consecutive.
  planning::PlanSource compiled_step() const {
    const Graph model = models::rebatched(models::load_model(options_.model), options_.batch);
    planning::PlanSource source =
        compiled(train::training_step(model, options_.train, options_.loss, {}));
    if (!options_.split) return source;
    const planning::SplitStep split =
        train::split_training_step(model, options_.train, options_.loss, {});
    source.is_split_whole = true;
    for (int micro_batches = 2; micro_batches <= split.batch && micro_batches <= kMaxMicroBatches;
         ++micro_batches) {
      if (split.batch % micro_batches != 0) continue;
      source.split.emplace_back(micro_batches, [=, this] {
        return compiled(split.in_micro_batches(micro_batches)).problem;
      });
    }
    return source;
  }

  planning::PlanSource compiled(passes::StatefulGraph step) const {
    driver::CompileRequest request;
    request.describes_step = true;
    request.target = planned_target();
    step = passes::with_recurrent_states(std::move(step), request.target.is_gpu());
    const codegen::Compiled made = driver::compile_model(step.graph, request);
    const Program& program = made.program;
    const std::optional<codegen::StepProblem>& described = made.step_problem;
    if (!described || !program.is_kernel_only()) {
      throw Error("the memory of this program cannot be planned", ErrorKind::Unsupported)
          .expected("kernels one after another, with extents that are known")
          .hint("a number for the batch: zoo:NAME?batch=8");
    }
    planning::PlanSource source;
    source.problem = described->problem;
    source.problem.fixed_bytes = planning::bytes_outside_arena(program, 0);
    if (options_.swap)
      planning::allow_swaps(source.problem,
                            device_.link ? *device_.link : planning::swap_link(program));
    source.note = "a training step, compiled";
    if (options_.device.empty()) return source;
    for (memory::Item& item : source.problem.items) {
      double seconds = 0;
      for (const std::uint32_t number : described->steps[item.number]) {
        seconds += device_.seconds(program.steps[number].flops, program.steps[number].bytes);
      }
      item.alternatives[0].seconds = seconds;
    }
    return source;
  }

  bool in_place() const { return !options_.no_in_place; }

  std::vector<memory::Problem> prepared(const memory::Problem& problem) const {
    memory::verify(problem);
    return memory::candidate_orders(problem, in_place());
  }

  memory::OrderedResult searched(const std::vector<memory::Problem>& orders, std::uint64_t budget) {
    memory::SearchOptions search;
    search.budget_bytes = budget;
    search.may_swap = options_.swap;
    search.may_recompute = options_.recompute || !options_.swap;
    search.step_limit = options_.step_limit;
    search.place = place_;
    search.in_place = in_place();
    search.goes_on = [this](const memory::SearchProgress& at) { return progress_.goes_on(at); };
    if (method_ == memory::Method::Search)
      return memory::search_orders(orders, search, !options_.train.empty());
    return {0, memory::plan_by_lower_sets(orders.front(), search, method_)};
  }

  Found found_in(const std::vector<memory::Problem>& orders, std::uint64_t budget) {
    memory::OrderedResult found = searched(orders, budget);
    return {&orders[found.order], std::move(found.result)};
  }

  Found plan_within(std::uint64_t budget) {
    Found best = found_in(orders_, budget);
    best.overhead = best.result.plan.seconds / base_seconds_ - 1;
    if (!options_.split) return best;
    // More parts take less memory, and somewhat more time to read the parameters again.
    for (std::size_t k = 0; k < source_.split.size(); ++k) {
      if (best.result.is_within_budget && best.overhead <= 0) break;
      if (best.result.was_stopped) break;
      const auto& [micro_batches, make] = source_.split[k];
      if (!split_[k]) split_[k] = prepared(make());
      Found found = found_in(*split_[k], budget);
      found.result.was_stopped = found.result.was_stopped || Interrupt::is_asked();
      found.micro_batches = micro_batches;
      found.overhead = found.result.plan.seconds * times(micro_batches) / base_seconds_ - 1;
      const bool is_within = found.result.is_within_budget;
      const bool is_better = is_within
                                 ? !best.result.is_within_budget || found.overhead < best.overhead
                                 : !best.result.is_within_budget &&
                                       found.result.plan.arena_bytes < best.result.plan.arena_bytes;
      if (is_better) {
        best = std::move(found);
      } else if (is_within) {
        break;  // if parts are slower, more of them are too
      }
    }
    return best;
  }

  // Number of executions of a plan per batch.
  int times(int micro_batches) const { return source_.is_split_whole ? 1 : micro_batches; }

  // Plan of a method at a budget, or the reason for its failure.
  struct Compared {
    std::optional<memory::SearchResult> found;
    std::string refusal;
  };

  Compared compared(memory::Method method, std::uint64_t budget) {
    method_ = method;
    try {
      return {searched(orders_, budget).result, ""};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
      return {std::nullopt, error.summary()};
    }
  }

  // Prints every method at the budgets of `--compare`. A method that does not support the problem
  // leaves its column empty.
  int compare() {
    const std::vector<std::string> budgets =
        options_.budget.empty() ? std::vector<std::string>{"80%", "70%", "60%", "50%", "40%"}
                                : split(options_.budget, ',');
    const std::vector<std::string>& methods = memory::method_names();
    std::vector<std::string> titles = {">budget", ">bytes"};
    for (const std::string& name : methods) titles.push_back(">" + name);
    Table table(titles);
    Json json = {{"model", options_.model}, {"read_as", source_.note}, {"budgets", Json::array()}};
    std::map<std::string, std::string> refusals;  // by method
    for (const std::string& text : budgets) {
      const std::uint64_t budget = planning::arena_budget(text, plain_.arena_bytes, 0);
      std::vector<std::string> row = {text, std::to_string(budget)};
      Json line = {{"budget_bytes", budget}};
      for (std::size_t k = 0; k < methods.size() && !Interrupt::is_asked(); ++k) {
        progress_.begin(concat(text, ", ", methods[k]), base_seconds_);
        const Compared compared = this->compared(static_cast<memory::Method>(k), budget);
        if (!compared.found) refusals.emplace(methods[k], compared.refusal);
        const bool is_found = compared.found && compared.found->is_within_budget;
        const double overhead = is_found ? compared.found->plan.seconds / base_seconds_ - 1 : 0;
        row.push_back(is_found         ? percent(overhead)
                      : compared.found ? "none found"
                                       : "not possible");
        Json& cell = line[methods[k]];
        if (is_found)
          cell = {{"overhead", overhead}, {"arena_bytes", compared.found->plan.arena_bytes}};
        if (!compared.found) cell = {{"refusal", compared.refusal}};
      }
      row.resize(titles.size(), "stopped");
      table.add(row);
      json["budgets"].push_back(std::move(line));
      if (Interrupt::is_asked()) break;
    }
    if (progress_.end()) json["was_stopped"] = true;
    if (format_ == OutputFormat::Json) {
      out() << json.dump(2) << "\n";
      return 0;
    }
    table.print(out());
    for (const auto& [method, refusal] : refusals)
      out() << "\n" << method << ": " << refusal << "\n";
    return 0;
  }

  [[noreturn]] void refuse(std::uint64_t budget, const Found& found) const {
    const memory::Plan& smallest = found.result.plan;
    const std::uint64_t bound = memory::largest_working_set_bytes(*found.problem);
    Error error("no plan keeps the arena within the budget", ErrorKind::OutOfMemory);
    error.at(memory::text_of(memory::peak_of(smallest, *found.problem)));
    error.expected("at most ", budget, " bytes (", format_bytes(budget), ")");
    error.got("at least ", smallest.arena_bytes, " bytes (", format_bytes(smallest.arena_bytes),
              "), the least found",
              found.micro_batches > 1
                  ? concat(", with the batch in ", found.micro_batches, " parts")
                  : "");
    std::string hint;
    if (bound > budget) {
      hint = concat("no plan of whole operators takes less than ", bound, " bytes; ");
    } else {
      hint = concat("proven is only that ", bound, " bytes are needed; ");
    }
    if (!options_.split && !source_.split.empty()) {
      hint += "--split works the batch off in parts";
    } else if (!options_.swap && bound <= budget) {
      hint += "--swap may help, or a smaller batch";
    } else {
      hint += "a smaller batch needs less";
    }
    throw error.hint(hint);
  }

  int frontier() {
    std::vector<memory::FrontierPoint> points;
    for (int share = 100; share >= 20; share -= 10) {
      memory::FrontierPoint point;
      point.budget_bytes =
          static_cast<std::uint64_t>(static_cast<double>(plain_.arena_bytes) * share / 100);
      if (share == 100) {
        point.arena_bytes = plain_.arena_bytes;
        point.is_possible = true;
      } else if (point.budget_bytes >= bound_bytes_ || options_.split) {
        progress_.begin(concat(share, "%"), base_seconds_);
        const Found found = plan_within(point.budget_bytes);
        point.is_possible = found.result.is_within_budget;
        point.arena_bytes = found.result.plan.arena_bytes;
        point.overhead = found.overhead;
        if (Interrupt::is_asked() && !point.is_possible) break;
        progress_.tell(point.is_possible ? percent(point.overhead) + " more time" : "none found");
      }
      points.push_back(point);
      if (Interrupt::is_asked()) break;
    }
    was_stopped_ = progress_.end();
    if (!options_.html.empty()) {
      write_file(options_.html,
                 memory::frontier_page("Budget against time: " + source_.problem.name, points));
    }
    if (format_ == OutputFormat::Json) {
      Json json = {
          {"model", options_.model}, {"seconds", base_seconds_}, {"frontier", Json::array()}};
      for (const auto& point : points) {
        Json row = {{"budget_bytes", point.budget_bytes}, {"is_possible", point.is_possible}};
        if (point.is_possible) {
          row["arena_bytes"] = point.arena_bytes;
          row["overhead"] = point.overhead;
        }
        json["frontier"].push_back(std::move(row));
      }
      if (was_stopped_) json["was_stopped"] = true;
      out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
      return 0;
    }
    Table table({">budget", ">bytes", ">arena", ">extra time"});
    for (const auto& point : points) {
      table.add({format_bytes(point.budget_bytes), std::to_string(point.budget_bytes),
                 point.is_possible ? format_bytes(point.arena_bytes) : "none found",
                 point.is_possible ? percent(point.overhead) : ""});
    }
    table.print(out());
    return 0;
  }

  void report(const memory::Problem& problem, const memory::Plan& plan, int micro_batches,
              std::optional<std::uint64_t> budget, const memory::SearchResult* result) {
    if (!options_.output.empty()) write_file(options_.output, memory::print(plan, problem));
    if (!options_.html.empty())
      write_file(options_.html, memory::memory_map(plan, problem, budget.value_or(0)));
    std::size_t runs = 0, copies = 0;
    std::uint64_t swapped_bytes = 0;
    std::vector<std::uint32_t> again;
    std::vector<char> has_run(problem.items.size(), 0);
    for (const memory::Event& event : plan.events) {
      if (event.kind == memory::Event::Kind::Run) {
        ++runs;
        if (has_run[event.index] != 0) again.push_back(event.index);
        has_run[event.index] = 1;
      } else if (event.kind == memory::Event::Kind::Out) {
        ++copies;
        swapped_bytes += problem.values[event.index].bytes;
      }
    }
    const memory::Peak peak = memory::peak_of(plan, problem);
    const double overhead =
        base_seconds_ > 0 ? plan.seconds * times(micro_batches) / base_seconds_ - 1 : 0;
    if (format_ == OutputFormat::Json) {
      Json json = {{"model", options_.model},
                   {"read_as", source_.note},
                   {"device", device_name()},
                   {"items", problem.items.size()},
                   {"values", problem.values.size()},
                   {"fixed_bytes", problem.fixed_bytes},
                   {"plain_arena_bytes", plain_.arena_bytes},
                   {"plain_live_bytes", plain_.max_live_bytes},
                   {"plain_order_bound_bytes", order_bound_bytes_},
                   {"lower_bound_bytes", bound_bytes_},
                   {"arena_bytes", plan.arena_bytes},
                   {"live_bytes", plan.max_live_bytes},
                   {"peak_bytes", problem.fixed_bytes + plan.arena_bytes},
                   {"plain_seconds", base_seconds_},
                   {"seconds", plan.seconds * times(micro_batches)},
                   {"overhead", overhead},
                   {"batch_parts", micro_batches},
                   {"items_run_again", again.size()},
                   {"values_swapped", copies},
                   {"bytes_swapped", swapped_bytes},
                   {"peak_at", peak.item}};
      if (budget) json["budget_bytes"] = *budget;
      if (was_stopped_) json["was_stopped"] = true;
      if (result != nullptr) json["evaluations"] = result->evaluation_count;
      json["run_again"] = Json::array();
      for (std::uint32_t item : again) json["run_again"].push_back(problem.items[item].name);
      json["alive_at_peak"] = Json::array();
      for (const auto& [name, bytes] : peak.alive)
        json["alive_at_peak"].push_back({{"name", name}, {"bytes", bytes}});
      out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
      return;
    }
    out() << options_.model << ": " << source_.note << "; " << problem.items.size() << " items, "
          << problem.values.size() << " values; " << device_name() << "\n\n";
    Table table({"", ">bytes", ""});
    const auto row = [&](const char* what, std::uint64_t bytes, std::string note) {
      table.add(
          {what, std::to_string(bytes), format_bytes(bytes) + (note.empty() ? "" : ", " + note)});
    };
    row("outside the arena", problem.fixed_bytes, "parameters, inputs");
    row("largest item", bound_bytes_, "no plan of whole items takes less");
    row("arena without a budget", plain_.arena_bytes,
        concat("most alive at once ", plain_.max_live_bytes, ", at least ", order_bound_bytes_,
               " in any order"));
    if (budget) {
      row("budget", *budget, "");
      row("arena", plan.arena_bytes, concat("most alive at once ", plan.max_live_bytes));
      table.add({"extra time", percent(overhead),
                 concat(format_real(plan.seconds * times(micro_batches)), " s in place of ",
                        format_real(base_seconds_), " s")});
      table.add({"items run again", std::to_string(again.size()), concat("of ", runs, " runs")});
      if (copies > 0)
        row("swapped", swapped_bytes,
            concat(copies, " values, to ", problem.link->name, " at ",
                   format_count(problem.link->bytes_per_s), "B/s"));
      if (micro_batches > 1) table.add({"parts of the batch", std::to_string(micro_batches), ""});
    }
    table.print(out());
    out() << "\nAlive at the peak, when " << peak.item << " runs:\n\n";
    Table alive({"value", ">bytes", ""});
    for (std::size_t k = 0; k < peak.alive.size() && k < 10; ++k) {
      const auto& [name, bytes] = peak.alive[k];
      alive.add({name, std::to_string(bytes), format_bytes(bytes)});
    }
    alive.print(out());
  }

  const PlanOptions& options_;
  OutputFormat format_;
  memory::DeviceSpec device_;
  memory::PlaceOptions place_;
  planning::PlanSource source_;
  memory::Plan plain_;
  double base_seconds_ = 0;
  std::uint64_t bound_bytes_ = 0, order_bound_bytes_ = 0;
  std::vector<memory::Problem> orders_;  // orders of its items
  std::vector<std::optional<std::vector<memory::Problem>>>
      split_;  // the same for micro-batches, built on demand
  memory::Method method_ = memory::Method::Search;
  PlanProgress progress_;
  bool was_stopped_ = false;  // by the user: results are those found so far
};

int plan(const PlanOptions& options, OutputFormat format) {
  if (!options.cluster.empty()) return plan_on_cluster(options, format);
  return PlanCommand(options, format).run();
}

}  // namespace

void add_plan(Commands& commands) {
  const auto [app, options] = commands.add<PlanOptions>(
      "plan", "Plan memory: peak of a model, and its fastest plan within a budget", plan);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("--budget", options.budget,
                 "bytes of the arena: 4GiB, 500MB, or 60% of the size without a budget");
  app.add_flag("--train{adamw}", options.train,
               "a training step with this optimizer: kernels as selected for this machine, or "
               "with --cluster for many ranks")
      ->type_name("[=OPTIMIZER]");
  app.add_option("--loss", options.loss, "with --train: as for train");
  app.add_option(
      "--cluster", options.cluster,
      "JSON description of machines and links, or here[:THREADS]: estimate a step on many ranks");
  app.add_option("--ranks", options.ranks,
                 "numbers of ranks (default: 1,2,4,… as many as the cluster has)");
  app.add_option("--batch", options.batch,
                 "batch size, as for run; with --cluster: samples per rank (default: the "
                 "model's, or 32)")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--recompute", options.recompute, "allow rematerialization (the default)");
  app.add_flag("--swap", options.swap, "allow offload to the host; the device needs a link");
  app.add_flag("--split", options.split, "allow gradient accumulation over micro-batches");
  app.add_option("--device", options.device, "JSON description: rates of arithmetic, memory, link");
  app.add_option("--reading", options.reading,
                 "for a Chainer document: retained (values that it retains), tags, or "
                 "fused (fused functions)");
  app.add_option("--method", options.method,
                 "search (default), or a published one: approximate, exact (lower sets), chen");
  app.add_flag("--compare", options.compare,
               "compare all methods; --budget takes several, with commas");
  app.add_flag("--frontier", options.frontier, "the frontier of budget and time");
  app.add_option("--html", options.html, "write the memory map as a page");
  app.add_option("-o,--output", options.output, "write the plan as text");
  app.add_option("--target", options.target,
                 "with --train: cpu (default) or cuda[:sm_90a], which need not be present");
  app.add_option("--precision", options.precision, "with --train: as for compile");
  app.add_flag("--no-in-place", options.no_in_place, "forbid in-place results");
  app.add_option("--alignment", options.alignment, "alignment of every buffer (default: 64)");
  app.add_option("--steps", options.step_limit,
                 "search steps per restart (default: by problem size)");
}

}  // namespace tenon::cli

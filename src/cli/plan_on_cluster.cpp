#include "base/error.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/plan.h"
#include "cli/table.h"
#include "models/model.h"
#include "models/rebatch.h"
#include "train/measured_cluster.h"
#include "train/options.h"
#include "train/trainer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace tenon::cli {
namespace {

constexpr std::int64_t kUsualBatch = 32;

distributed::Cluster read_cluster(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("a description of a cluster cannot be read", ErrorKind::Usage).got(path);
  std::ostringstream text;
  text << file.rdbuf();
  return distributed::parse_cluster(text.str(), path);
}

// Parses "here" and "here:2": this machine, with that number of threads per rank.
std::optional<int> threads_of_here(const std::string& text) {
  if (text == "here") return 1;
  if (!text.starts_with("here:")) return std::nullopt;
  const std::optional<std::int64_t> threads = parse_integer(text.substr(5));
  if (!threads || *threads < 1 || *threads > 4096)
    throw Error("--cluster=here:THREADS has no number of threads", ErrorKind::Usage).got(text);
  return static_cast<int>(*threads);
}

std::vector<std::int64_t> rank_counts(const std::string& text,
                                      const distributed::Cluster& cluster) {
  std::vector<std::int64_t> counts;
  if (text.empty()) {
    for (std::int64_t count = 1; count <= cluster.ranks; count *= 2) counts.push_back(count);
    return counts;
  }
  for (const std::string& word : split(text, ',')) {
    const std::optional<std::int64_t> count = parse_integer(word);
    if (!count || *count < 1 || *count > cluster.ranks) {
      throw Error("--ranks is no list of numbers of ranks", ErrorKind::Usage)
          .expected("1 to ", cluster.ranks, ", as the cluster has")
          .got(word);
    }
    counts.push_back(*count);
  }
  return counts;
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

// Returns the model's batch if it is static.
std::int64_t own_batch(const Graph& model) {
  const std::optional<Dim> batch = models::batch_of(model);
  return batch && batch->is_constant() ? batch->constant() : kUsualBatch;
}

// Returns the largest batch per rank that fits in memory, found by halving.
std::int64_t fitting_batch(const Graph& model, const passes::TrainOptions& train,
                           const distributed::Cluster& cluster, std::int64_t ranks,
                           std::int64_t batch) {
  while ((batch /= 2) > 0) {
    if (distributed::best_plan(
            distributed::StepCosts(train::with_batch(model, batch), train, cluster), cluster, ranks)
            .fits)
      return batch;
  }
  return 0;
}

}  // namespace

int plan_on_cluster(const PlanOptions& options, OutputFormat format) {
  if (options.train.empty()) {
    throw Error("--cluster plans a step of training", ErrorKind::Usage)
        .hint("give --train=OPTIMIZER");
  }
  const std::optional<int> threads_here = threads_of_here(options.cluster);
  const distributed::Cluster cluster =
      threads_here ? train::cluster_here(*threads_here) : read_cluster(options.cluster);
  const std::vector<std::int64_t> counts = rank_counts(options.ranks, cluster);
  passes::TrainOptions train;
  train::set_optimizer(train, options.train);
  if (!options.loss.empty()) train::set_loss(train.loss, options.loss);
  const Graph model = models::load_model(options.model);
  const std::int64_t batch = options.batch > 0 ? options.batch : own_batch(model);
  distributed::StepCosts costs(train::with_batch(model, batch), train, cluster);
  if (threads_here)
    costs = train::measured(std::move(costs), train::with_batch(model, batch), train, batch,
                            cluster, *threads_here);
  std::vector<distributed::StepPlan> plans;
  for (const std::int64_t count : counts)
    plans.push_back(distributed::best_plan(costs, cluster, count));
  if (!plans.back().fits) {
    const std::int64_t fitting = fitting_batch(model, train, cluster, counts.back(), batch);
    throw Error("a step does not fit into a rank's memory", ErrorKind::OutOfMemory)
        .expected("at most ", bytes_text(static_cast<double>(cluster.device.memory_bytes)))
        .got(bytes_text(plans.back().bytes_per_rank), " with a batch of ", batch, " a rank")
        .hint(fitting > 0 ? concat("a batch of ", fitting, " fits") : "not even a batch of 1 fits");
  }
  const auto hidden = [](const distributed::StepPlan& plan) {
    return plan.communication_s > 0 ? 1 - plan.waited_s / plan.communication_s : 1.0;
  };
  const auto rate = [&](const distributed::StepPlan& plan) {
    return static_cast<double>(plan.ranks * batch) / plan.step_s;
  };
  const double alone =
      static_cast<double>(batch) / distributed::plan_step(costs, cluster, 1, false, 1).step_s;
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json{{"model", options.model},
                                {"cluster", cluster.name},
                                {"batch_per_rank", batch},
                                {"gradient_bytes", costs.gradient_bytes},
                                {"plans", nlohmann::ordered_json::array()}};
    for (const distributed::StepPlan& plan : plans) {
      json["plans"].push_back({{"ranks", plan.ranks},
                               {"states", plan.splits_states ? "split" : "whole"},
                               {"bucket_bytes", plan.bucket_bytes},
                               {"step_s", plan.step_s},
                               {"compute_s", plan.compute_s},
                               {"communication_s", plan.communication_s},
                               {"hidden_share", hidden(plan)},
                               {"samples_per_s", rate(plan)},
                               {"efficiency", rate(plan) / alone / static_cast<double>(plan.ranks)},
                               {"bytes_per_rank", plan.bytes_per_rank},
                               {"fits", plan.fits}});
      for (std::size_t k = 0; k < cluster.tiers.size(); ++k)
        json["plans"].back()["bytes_sent"][cluster.tiers[k].name] = plan.link_bytes[k];
    }
    out() << json.dump(2) << "\n";
    return 0;
  }
  out() << options.model << ", " << batch << " samples a rank, " << options.train << "; "
        << cluster.name << "\n\n";
  std::vector<std::string> titles = {">ranks", ">step ms", ">samples/s",        ">of ideal",
                                     "states", ">buckets", ">communication ms", ">hidden",
                                     ">memory"};
  for (const distributed::Cluster::Tier& tier : cluster.tiers)
    titles.push_back(concat(">", tier.name));
  Table table(titles);
  for (const distributed::StepPlan& plan : plans) {
    std::vector<std::string> row = {
        std::to_string(plan.ranks),
        fmt::format("{:.2f}", 1e3 * plan.step_s),
        fmt::format("{:.0f}", rate(plan)),
        fmt::format("{:.1f} %", 100 * rate(plan) / alone / static_cast<double>(plan.ranks)),
        plan.splits_states ? "split" : "whole",
        plan.ranks == 1 ? "" : bytes_text(plan.bucket_bytes),
        fmt::format("{:.2f}", 1e3 * plan.communication_s),
        plan.ranks == 1 ? "" : fmt::format("{:.0f} %", 100 * hidden(plan)),
        concat(bytes_text(plan.bytes_per_rank), plan.fits ? "" : " (too much)")};
    for (double bytes : plan.link_bytes) row.push_back(bytes == 0 ? "" : bytes_text(bytes));
    table.add(std::move(row));
  }
  table.print(out());
  return 0;
}

}  // namespace tenon::cli

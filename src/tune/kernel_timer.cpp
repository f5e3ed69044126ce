#include "tune/kernel_timer.h"

#include "base/error.h"
#include "expr/access.h"
#include "models/extract_node.h"
#include "models/inputs.h"
#include "tune/device_tuning.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tenon::tune {
namespace {

constexpr int kMostRuns = 8, kFewestRuns = 3;
constexpr double kEnoughSeconds = 0.06;  // of runs of one candidate
constexpr double kClearlySlower = 1.25;
constexpr std::size_t kCacheLine = 64;
constexpr double kMostBytes = 128e6;  // of operands and results
// limit on the constants of candidates that are loaded at once
constexpr std::uint64_t kMostConstants = 512 << 20;

std::size_t cache_bytes() {
  const long found = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp<std::size_t>(found > 0 ? static_cast<std::size_t>(found) : 0, 8 << 20,
                                 48 << 20);
}

// Reads one number per cache line to load the data into the cache.
char touch(const void* data, std::size_t bytes) {
  const auto* chars = static_cast<const volatile char*>(data);
  char last = 0;
  for (std::size_t k = 0; k < bytes; k += kCacheLine) last = chars[k];
  return last;
}

// Makes inputs whose large tensors repeat a block of numbers: device times do not depend on the
// values, and generating hundreds of megabytes would take longer than the timing.
std::vector<Datum> repeating_inputs(const Graph& graph,
                                    const std::map<std::string, Shape>& shapes) {
  constexpr std::int64_t kMostNumbers = 1 << 18;
  Graph small(graph.name);
  std::map<std::string, Shape> small_shapes;
  for (const ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    const Shape& shape = shapes.at(value.name);
    const bool is_large = checked_element_count(shape) > kMostNumbers;
    small_shapes[value.name] = is_large ? Shape{kMostNumbers} : shape;
    TensorType type;
    type.dtype = value.type.tensor().dtype;
    for (const std::int64_t extent : small_shapes[value.name]) type.dims.emplace_back(extent);
    small.add_input(value.name, type);
  }
  std::vector<Datum> inputs = models::random_inputs(small, 1, small_shapes);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Shape& shape = shapes.at(graph.value(graph.inputs()[k]).name);
    if (inputs[k].tensor().shape() == shape) continue;
    const Tensor block = inputs[k].tensor();
    Tensor whole(block.dtype(), shape);
    const std::span<std::byte> bytes = whole.mutable_bytes();
    for (std::size_t at = 0; at < bytes.size(); at += block.byte_size())
      std::memcpy(bytes.data() + at, block.bytes().data(),
                  std::min(block.byte_size(), bytes.size() - at));
    inputs[k] = std::move(whole);
  }
  return inputs;
}

}  // namespace

struct KernelTimer::Prepared {
  std::unique_ptr<CompiledModel> model;
  std::vector<bool>
      untimed_candidates;  // by step: library calls whose algorithms remain to be timed
  std::vector<double> seconds;
  std::size_t first_step = 0, step_count = 0;
};

KernelTimer::KernelTimer(const Graph& graph, const codegen::Decision& decision, Settings settings)
    : alone_(models::extract_node(graph, decision.node)),
      work_(decision.work),
      settings_(std::move(settings)) {
  if (!is_for_device()) other_data_.resize(std::min(settings_.constant_bytes, cache_bytes()), 1);
}
KernelTimer::~KernelTimer() = default;

DimBindings KernelTimer::values(const std::string& symbol, std::int64_t at) const {
  SymbolRanges symbols;
  for (const ValueId input : alone_.inputs()) {
    const Type& type = alone_.value(input).type;
    if (!type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) dim.collect_symbols(symbols);
  }
  DimBindings bindings;
  for (const auto& [name, range] : symbols) {
    const auto usual = static_cast<std::int64_t>(size_hint(Dim::symbol(name, range)));
    bindings[name] = name == symbol ? at : std::clamp(usual, range.lo, range.hi);
  }
  return bindings;
}

std::int64_t KernelTimer::greatest_value(const std::string& symbol, std::int64_t least,
                                         std::int64_t most) const {
  const auto bytes_at = [&](std::int64_t at) {
    const DimBindings bound = values(symbol, at);
    double bytes = 0;
    for (const auto* list : {&alone_.inputs(), &alone_.outputs()}) {
      for (const ValueId value : *list) {
        const Type& type = alone_.value(value).type;
        if (type.is_tensor()) {
          bytes += size_hint(product(substitute(type.tensor().dims, bound))) *
                   static_cast<double>(info(type.tensor().dtype).storage_bytes);
        }
      }
    }
    return bytes;
  };
  std::int64_t greatest = std::min<std::int64_t>(most, 4096);
  while (greatest > least && bytes_at(greatest) > kMostBytes)
    greatest = std::max(least, greatest / 2);
  return std::max(greatest, least);
}

KernelTimer::Prepared& KernelTimer::prepared(std::size_t candidate) {
  std::unique_ptr<Prepared>& slot = prepared_[candidate];
  if (slot) return *slot;
  codegen::CompileOptions options = settings_.compile;
  options.keeps_record = true;
  options.on_fallback = {};  // The candidate itself is timed, or none.
  options.choose = [&](const codegen::Decision& asked) -> std::optional<codegen::Selection> {
    if (asked.work != work_) return std::nullopt;
    return codegen::Selection{{{candidate}}, "timed"};
  };
  codegen::Compiled compiled = codegen::compile(alone_, options);
  Program program = std::move(compiled.program);
  if (settings_.ready) program = settings_.ready(std::move(program));
  auto made = std::make_unique<Prepared>();
  TuneReport counted;
  if (is_for_device())
    made->untimed_candidates =
        use_tuned_candidates(*settings_.cache, device_place(), program, counted);
  const auto found = std::ranges::find(compiled.decisions, work_, &codegen::Decision::work);
  if (found == compiled.decisions.end()) {
    throw Error("a node alone is computed in another way than in its graph",
                ErrorKind::Unsupported);
  }
  made->first_step = found->first_step;
  made->step_count = found->step_count;
  made->model = std::make_unique<CompiledModel>(std::move(program), settings_.threads);
  slot = std::move(made);
  return *slot;
}

void KernelTimer::prepare(Prepared& candidate, const std::string& symbol, std::int64_t at) {
  const DimBindings bound = values(symbol, at);
  std::map<std::string, Shape> shapes;
  for (const ValueId input : alone_.inputs()) {
    const Value& value = alone_.value(input);
    shapes[value.name] = constants(substitute(value.type.tensor().dims, bound));
  }
  if (shapes != shapes_ || inputs_.empty())
    inputs_ = is_for_device() ? repeating_inputs(alone_, shapes)
                              : models::random_inputs(alone_, 1, shapes);
  shapes_ = std::move(shapes);
  candidate.model->prepare(inputs_);
  candidate.model->run_prepared();  // warm-up: touches memory for the first time
  if (std::ranges::count(candidate.untimed_candidates, true) == 0) return;
  remember_candidates(*settings_.cache, device_place(), candidate.model->program(),
                      candidate.model->executor().time_candidates(candidate.untimed_candidates));
  candidate.untimed_candidates.clear();
}

// Restores the cache state inside a network: other layers have evicted the constants, and the
// inputs were just written.
double KernelTimer::run_once(Prepared& candidate) {
  if (is_for_device())
    return candidate.model->executor().time_steps(candidate.first_step, candidate.step_count);
  touch(other_data_.data(), other_data_.size());
  for (const Datum& input : inputs_)
    touch(input.tensor().bytes().data(), input.tensor().byte_size());
  candidate.seconds.assign(candidate.model->program().steps.size(), 0);
  candidate.model->run_prepared(candidate.seconds);
  double sum = 0;
  for (std::size_t k = 0; k < candidate.step_count; ++k)
    sum += candidate.seconds[candidate.first_step + k];
  return sum;
}

std::map<std::size_t, KernelTimer::Measure> KernelTimer::measure(
    const std::vector<std::size_t>& candidates, const std::string& symbol, std::int64_t at,
    const std::function<bool()>& is_interrupted) {
  std::map<std::size_t, Measure> measures;
  double best = 0;
  std::vector<std::size_t> waiting = candidates;
  while (!waiting.empty()) {
    // Times candidates together as far as memory permits.
    std::vector<std::size_t> group;
    std::uint64_t constant_bytes = 0;
    while (!waiting.empty() && (group.empty() || constant_bytes < kMostConstants)) {
      if (is_interrupted && is_interrupted()) return measures;
      const std::size_t next = waiting.front();
      waiting.erase(waiting.begin());
      const auto has_other = [&] {
        return !waiting.empty() || !group.empty() ||
               std::ranges::any_of(
                   measures, [](const auto& each) { return std::isfinite(each.second.seconds); });
      };
      const auto drop = [&] {
        measures[next] = {std::numeric_limits<double>::infinity(), 1};
        prepared_.erase(next);
      };
      try {
        Prepared& ready = prepared(next);
        prepare(ready, symbol, at);
        constant_bytes += ready.model->program().constant_bytes;
        group.push_back(next);
      } catch (const Error&) {
        // A library may not support the operation; an error is reported only if no other candidate
        // does.
        if (!is_for_device() || !has_other()) throw;
        drop();
      } catch (const InternalError& error) {
        const auto& on_fallback = settings_.compile.on_fallback;
        if (!on_fallback || !has_other()) throw;
        on_fallback(error, "it is not timed");
        drop();
      }
    }
    for (int round = 0; round < kMostRuns; ++round) {
      for (const std::size_t candidate : group) {
        if (is_interrupted && is_interrupted()) return measures;
        Measure& measure = measures[candidate];
        if (measure.runs > 0 && measure.seconds > kClearlySlower * best) continue;
        if (measure.runs >= kFewestRuns &&
            static_cast<double>(measure.runs) * measure.seconds > kEnoughSeconds)
          continue;
        const double seconds = std::max(run_once(*prepared_.at(candidate)), 1e-9);
        measure.seconds = measure.runs == 0 ? seconds : std::min(measure.seconds, seconds);
        ++measure.runs;
        best = best == 0 ? measure.seconds : std::min(best, measure.seconds);
      }
    }
    if (!waiting.empty()) prepared_.clear();
  }
  return measures;
}

}  // namespace tenon::tune

#include "api/handles.h"
#include "base/error.h"
#include "base/text.h"
#include "embed/call.h"
#include "embed/options.h"
#include "embed/tensor.h"
#include "passes/train/train.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/trainer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

using namespace tenon;       // NOLINT: C functions only
using namespace tenon::api;  // NOLINT
using tenon::embed::call;
using tenon::embed::Options;
using tenon::embed::require;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostThreads = 4096;

std::shared_ptr<TrainerState> make_trainer(const Graph& model, const char* options) {
  Options given(options);
  passes::TrainOptions train_options;
  if (const auto text = given.text("loss")) train::set_loss(train_options.loss, *text);
  if (const auto text = given.text("optimizer")) train::set_optimizer(train_options, *text);
  if (const auto text = given.text("schedule")) train::set_schedule(train_options.schedule, *text);
  train_options.parameters = given.texts("parameters");
  train_options.frozen = given.texts("frozen");
  train_options.seed =
      given.integer("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(1);
  const std::int64_t batch = given.integer("batch", 1, std::int64_t{1} << 32).value_or(32);
  const auto threads = static_cast<int>(given.integer("threads", 0, kMostThreads).value_or(0));
  given.finish();
  auto trainer = std::make_shared<TrainerState>();
  trainer->original = model;
  trainer->session = std::make_unique<train::Session>(
      passes::train(train::with_batch(model, batch), train_options),
      train::SessionOptions{threads});
  return trainer;
}

Json port(const Graph& graph, ValueId id) {
  return {{"name", graph.value(id).name}, {"type", to_string(graph.value(id).type)}};
}

std::string describe(const TrainerState& trainer) {
  const passes::StatefulGraph& step = trainer.session->step();
  Json inputs = Json::array(), outputs = Json::array(), states = Json::array();
  for (const std::size_t k : step.data_inputs())
    inputs.push_back(port(step.graph, step.graph.inputs()[k]));
  for (const std::size_t k : step.data_outputs())
    outputs.push_back(port(step.graph, step.graph.outputs()[k]));
  for (const passes::State& state : step.states) {
    states.push_back({{"name", state.name}, {"type", to_string(Type(state.initial.type()))}});
  }
  return Json{{"inputs", inputs},
              {"outputs", outputs},
              {"states", states},
              {"step", trainer.step},
              {"arena_bytes", trainer.session->arena_bytes()}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

void step(TrainerState& trainer, std::span<const tenon_tensor> batch,
          std::span<tenon_tensor> outputs) {
  const passes::StatefulGraph& graph = trainer.session->step();
  const std::vector<std::size_t> inputs = graph.data_inputs(), results = graph.data_outputs();
  if (batch.size() != inputs.size()) {
    throw Error("a step takes another number of inputs", ErrorKind::Usage)
        .expected(inputs.size())
        .got(batch.size());
  }
  if (outputs.size() != results.size()) {
    throw Error("a step gives another number of outputs", ErrorKind::Usage)
        .expected(results.size())
        .got(outputs.size());
  }
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& value = graph.graph.value(graph.graph.inputs()[inputs[k]]);
    tensors.push_back(borrowed_tensor(batch[k], concat("input '", value.name, "'")));
    if (tensors.back().type().dtype == value.type.tensor().dtype &&
        tensors.back().type().dims == value.type.tensor().dims)
      continue;
    throw Error(concat("input '", value.name, "' does not fit"), ErrorKind::Usage)
        .expected(value.type)
        .got(tensors.back().type());
  }
  const auto value_of = [&](std::size_t k) -> const Value& {
    return graph.graph.value(graph.graph.outputs()[results[k]]);
  };
  const auto name_of = [&](std::size_t k) { return concat("output '", value_of(k).name, "'"); };
  // A step changes the states, so outputs that do not fit are refused before it.
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (value_of(k).type.is_tensor() && all_constant(value_of(k).type.tensor().dims))
      require_fits(value_of(k).type.tensor(), outputs[k], name_of(k));
  }
  trainer.outputs.begin(batch, outputs);
  const std::vector<Tensor> made = trainer.session->run(tensors);
  ++trainer.step;
  trainer.observed.clear();
  trainer.outputs.end({made.begin(), made.end()}, batch, outputs, {}, name_of);
}

Tensor state_of(const TrainerState& trainer, const std::string& name) {
  std::vector<std::string> known;
  for (auto& [state, elements] : trainer.session->states()) {
    if (state == name) return elements;
    known.push_back(state);
  }
  throw Error(concat("no state is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, known));
}

std::span<const tenon_tensor> list(const tenon_tensor* tensors, std::size_t count) {
  if (count > 0) require(tensors, "tensors");
  return {tensors, count};
}

}  // namespace

extern "C" {

tenon_status tenon_trainer_create(tenon_model model, const char* options, tenon_trainer* trainer) {
  return call([&] {
    require(trainer, "trainer");
    *trainer = trainers().add(make_trainer(*model_handles().find(model), options));
  });
}

tenon_status tenon_trainer_describe(tenon_trainer trainer, char** json) {
  return call([&] {
    require(json, "json");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    *json = embed::text_for_caller(describe(*found));
  });
}

tenon_status tenon_trainer_step(tenon_trainer trainer, const tenon_tensor* batch,
                                size_t batch_count, tenon_tensor* outputs, size_t output_count) {
  return call([&] {
    if (output_count > 0) require(outputs, "outputs");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    step(*found, list(batch, batch_count), {outputs, output_count});
  });
}

tenon_status tenon_trainer_state(tenon_trainer trainer, const char* name, tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    Tensor& kept = found->observed[name];
    *elements = {};
    give(state_of(*found, name), *elements, kept, name);
  });
}

tenon_status tenon_trainer_set_state(tenon_trainer trainer, const char* name,
                                     const tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    state_of(*found, name);  // refuses unknown names
    train::States states = found->session->states();
    std::ranges::find(states, std::string(name), &train::States::value_type::first)->second =
        copied_tensor(*elements, concat("state '", name, "'"));
    found->observed.clear();
    found->session->set_states(states);
  });
}

tenon_status tenon_trainer_model(tenon_trainer trainer, tenon_model* model) {
  return call([&] {
    require(model, "model");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    // Copies the states, because the session continues in their memory.
    train::States states;
    for (const auto& [name, elements] : found->session->states()) {
      Tensor copy(elements.dtype(), elements.shape());
      std::ranges::copy(elements.bytes(), copy.mutable_bytes().begin());
      states.emplace_back(name, std::move(copy));
    }
    *model = model_handles().add(
        std::make_shared<const Graph>(passes::with_states(found->original, states)));
  });
}

tenon_status tenon_trainer_save(tenon_trainer trainer, const char* folder) {
  return call([&] {
    require(folder, "folder");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    train::Checkpoint checkpoint;
    checkpoint.states = found->session->states();
    checkpoint.step = found->step;
    checkpoint.step_hash = train::hash_of(found->session->step());
    train::write_checkpoint(checkpoint, folder);
  });
}

tenon_status tenon_trainer_restore(tenon_trainer trainer, const char* folder) {
  return call([&] {
    require(folder, "folder");
    const auto found = trainers().find(trainer);
    const ExecutorUse use(found->is_in_use);
    const train::Checkpoint checkpoint = train::read_checkpoint(folder);
    if (checkpoint.step_hash != train::hash_of(found->session->step())) {
      throw Error("the checkpoint is of another model, or of other options", ErrorKind::Usage)
          .at(train::checkpoint_path(folder));
    }
    found->observed.clear();
    found->session->set_states(checkpoint.states);
    found->step = checkpoint.step;
  });
}

tenon_status tenon_trainer_free(tenon_trainer trainer) {
  return call([&] { trainers().remove(trainer); });
}
}

#include "host/in_flight.h"

#include "host/program_types.h"

#include <algorithm>
#include <chrono>

namespace tenon::inline host {

InFlight::InFlight(const std::shared_ptr<const Executable>& model, int thread_count,
                   const std::vector<Tensor>& inputs, std::size_t count)
    : inputs_(inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs_) {
    shapes.push_back(input.shape());
    sources_.push_back(input.bytes().data());
  }
  const Program& program = model->program();
  for (std::size_t k = 0; k < count; ++k) {
    Lane& lane = lanes_.emplace_back(Lane{Executor(model, thread_count), {}, {}});
    lane.context.bind(shapes);
    for (std::size_t output = 0; output < program.outputs.size(); ++output) {
      lane.outputs.emplace_back(element_type_of(program.buffers[program.outputs[output]]),
                                lane.context.output_shape(output));
      lane.targets.push_back(lane.outputs.back().mutable_bytes().data());
    }
  }
}

double InFlight::run(std::size_t runs) {
  for (Lane& lane : lanes_) lane.context.run(sources_, lane.targets);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < runs; ++k) {
    Lane& lane = lanes_[k % lanes_.size()];
    if (k >= lanes_.size()) lane.context.finish();
    lane.context.start(sources_, lane.targets);
  }
  for (std::size_t k = 0; k < std::min(runs, lanes_.size()); ++k)
    lanes_[(runs - std::min(runs, lanes_.size()) + k) % lanes_.size()].context.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tenon::inline host

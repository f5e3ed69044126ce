#include "distributed/state_buffers.h"

#include <algorithm>

namespace tenon::distributed {

StateBuffers::StateBuffers(const passes::StatefulGraph& step, int rank, int rank_count,
                           std::size_t alignment) {
  const auto bytes_of = [&](const passes::State& state) {
    const Type& type = step.graph.value(step.graph.inputs()[state.input]).type;
    return static_cast<std::size_t>(byte_count(type.tensor()).constant());
  };
  for (std::size_t k = 0; k < step.states.size(); ++k)
    places_.push_back({bytes_of(step.states[k]), k});
  for (std::size_t k = 0; k < step.states.size(); ++k) {
    const passes::State& state = step.states[k];
    if (!state.split || state.split->axis || state.split->whole == state.name) continue;
    const auto whole = std::ranges::find(step.states, state.split->whole, &passes::State::name);
    const std::size_t offset = places_[k].bytes * static_cast<std::size_t>(rank);
    if (whole == step.states.end() || whole->split || offset % alignment != 0) continue;
    places_[k].inside = static_cast<std::size_t>(whole - step.states.begin());
    places_[k].offset = offset;
    // Includes the padding of the last piece.
    Slot& around = places_[places_[k].inside];
    around.bytes = std::max(around.bytes, places_[k].bytes * static_cast<std::size_t>(rank_count));
  }
}

std::uint64_t StateBuffers::bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (places_[k].inside == k) bytes += 2 * places_[k].bytes;
  }
  return bytes;
}

void StateBuffers::allocate(RankMemory& memory) {
  for (auto* all : {&now_, &next_}) {
    all->resize(places_.size());
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (places_[k].inside == k) (*all)[k] = memory.allocate_visible(places_[k].bytes);
    }
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const Slot& place = places_[k];
      if (place.inside == k) continue;
      const std::shared_ptr<std::byte>& around = (*all)[place.inside];
      (*all)[k] = {around, around.get() + place.offset};
    }
  }
}

}  // namespace tenon::distributed

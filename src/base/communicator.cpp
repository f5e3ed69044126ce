#include "base/communicator.h"

#include <cstdint>

namespace tenon::inline base {
namespace {

using Given = std::vector<std::span<const std::byte>>;
using Taken = std::vector<std::span<std::byte>>;

}  // namespace

void Communicator::all_gather(std::span<const std::byte> mine,
                              std::span<const std::span<std::byte>> all) {
  exchange(Given(static_cast<std::size_t>(size()), mine), all);
}

std::vector<std::string> Communicator::all_gather(const std::string& mine) {
  const auto count = static_cast<std::size_t>(size());
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(count);
  Taken places;
  for (std::uint64_t& one : lengths) places.push_back(std::as_writable_bytes(std::span(&one, 1)));
  all_gather(std::as_bytes(std::span(&length, 1)), places);
  std::vector<std::string> texts(count);
  places.clear();
  for (std::size_t k = 0; k < count; ++k) {
    texts[k].resize(lengths[k]);
    places.push_back(std::as_writable_bytes(std::span(texts[k])));
  }
  all_gather(std::as_bytes(std::span(mine)), places);
  return texts;
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  const auto count = static_cast<std::size_t>(size());
  Given given(count);
  Taken taken(count);
  if (rank() != root) {
    taken[static_cast<std::size_t>(root)] = bytes;
  } else {
    for (std::size_t k = 0; k < count; ++k) {
      if (k != static_cast<std::size_t>(root)) given[k] = bytes;
    }
  }
  exchange(given, taken);
}

void Communicator::send(std::span<const std::byte> bytes, int to) {
  Given given(static_cast<std::size_t>(size()));
  given[static_cast<std::size_t>(to)] = bytes;
  exchange(given, Taken(given.size()));
}

void Communicator::receive(std::span<std::byte> bytes, int from) {
  Taken taken(static_cast<std::size_t>(size()));
  taken[static_cast<std::size_t>(from)] = bytes;
  exchange(Given(taken.size()), taken);
}

void Communicator::barrier() { all_gather("."); }

std::shared_ptr<std::byte> Communicator::allocate_visible(std::size_t) { return nullptr; }
MemoryWindow Communicator::window_of(std::span<const std::byte>) const { return {}; }
std::span<const std::byte> Communicator::seen(int, const MemoryWindow&) { return {}; }

// All ranks learn all windows, so that they agree without another message.
std::optional<std::vector<Communicator::Shown>> Communicator::show(const Shown& mine) {
  if (!may_see()) return std::nullopt;
  const auto count = static_cast<std::size_t>(size());
  std::vector<MemoryWindow> windows;
  for (const auto& bytes : mine)
    windows.push_back(bytes.empty() ? MemoryWindow{.region = 1} : window_of(bytes));
  std::vector<std::vector<MemoryWindow>> all(count, std::vector<MemoryWindow>(mine.size()));
  Taken places;
  for (auto& one : all) places.push_back(std::as_writable_bytes(std::span(one)));
  all_gather(std::as_bytes(std::span(windows)), places);
  for (const auto& one : all) {
    for (const MemoryWindow& window : one) {
      if (window.region == 0) return std::nullopt;
    }
  }
  std::vector<Shown> shown(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (rank == static_cast<std::size_t>(this->rank())) {
      shown[rank] = mine;
      continue;
    }
    for (const MemoryWindow& window : all[rank])
      shown[rank].push_back(window.bytes == 0 ? std::span<const std::byte>()
                                              : seen(static_cast<int>(rank), window));
  }
  return shown;
}

void Communicator::hide() {
  const std::byte mine = {};
  std::vector<std::byte> all(static_cast<std::size_t>(size()));
  Taken places;
  for (std::byte& one : all) places.emplace_back(&one, 1);
  all_gather({&mine, 1}, places);
}

}  // namespace tenon::inline base

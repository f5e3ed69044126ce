#include "base/communicator.h"

#include <cstdint>

namespace tenon {
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

}  // namespace tenon

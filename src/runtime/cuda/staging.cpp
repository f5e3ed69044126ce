#include "runtime/cuda/staging.h"

#include "runtime/processors.h"
#include "runtime/thread_pool.h"

#include <algorithm>
#include <cstring>

namespace tenon::inline runtime::cuda {
namespace {

// A single core cannot saturate the link.
void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20, kChunkBytes = kLeastBytes / 4;
  if (bytes < kLeastBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  static const int threads = [] {
    const int most = std::min(4, usable_threads());
    ThreadPool::shared().reserve(most - 1);
    return most;
  }();
  struct Job {
    std::byte* to;
    const std::byte* from;
    std::uint64_t bytes;
  } job{to, from, bytes};
  const auto run = [](void* state, std::size_t, std::int64_t begin, std::int64_t end) {
    const Job& all = *static_cast<Job*>(state);
    const std::uint64_t first = static_cast<std::uint64_t>(begin) * kChunkBytes;
    const std::uint64_t last = std::min(all.bytes, static_cast<std::uint64_t>(end) * kChunkBytes);
    std::memcpy(all.to + first, all.from + first, last - first);
  };
  ThreadPool::Caller caller(ThreadPool::shared());
  const auto chunks = static_cast<std::int64_t>((bytes + kChunkBytes - 1) / kChunkBytes);
  caller.for_each(chunks, 1, threads, run, &job);
}

}  // namespace

Staging::~Staging() {
  abandon();
  for (const Event event : idle_) driver().destroy_event(event);
}

void Staging::reserve(std::uint64_t bytes) {
  const std::uint64_t wanted = std::min(bytes, most_bytes_);
  if (wanted <= memory_.bytes()) return;
  finish();
  memory_.try_allocate(wanted);
  next_ = 0;
}

bool Staging::has_room_for(std::uint64_t bytes) const {
  std::uint64_t taken = 0;
  for (const Piece& piece : under_way_) taken += piece.end - piece.begin;
  return taken + room(bytes) <= memory_.bytes();
}

void Staging::to_device(Address target, const void* source, std::uint64_t bytes, Stream stream) {
  const Driver& cuda = driver();
  const auto* from = static_cast<const std::byte*>(source);
  if (memory_.bytes() == 0) {
    cuda.require(cuda.to_device(target, from, bytes, stream), "copying an input");
    return;
  }
  const std::uint64_t most = most_of_piece(bytes);
  for (std::uint64_t done = 0; done < bytes; done += most) {
    const std::uint64_t count = std::min(most, bytes - done);
    std::byte* const place = place_for(count);
    copy(place, from + done, count);
    cuda.require(cuda.to_device(target + done, place, count, stream), "copying an input");
    note(nullptr, count, stream);
  }
}

void Staging::to_host(void* target, Address source, std::uint64_t bytes, Stream stream) {
  const Driver& cuda = driver();
  auto* to = static_cast<std::byte*>(target);
  if (memory_.bytes() == 0) {
    cuda.require(cuda.to_host(to, source, bytes, stream), "copying an output");
    return;
  }
  const std::uint64_t most = most_of_piece(bytes);
  for (std::uint64_t done = 0; done < bytes; done += most) {
    const std::uint64_t count = std::min(most, bytes - done);
    std::byte* const place = place_for(count);
    cuda.require(cuda.to_host(place, source + done, count, stream), "copying an output");
    note(to + done, count, stream);
  }
}

// Large copies use larger pieces, which several cores copy together.
std::uint64_t Staging::most_of_piece(std::uint64_t bytes) const {
  return std::min(memory_.bytes(), bytes < 8 * piece_bytes_ ? piece_bytes_ : 4 * piece_bytes_);
}

// Allocates after the last piece, wrapping around; waits for copies that still occupy the range.
std::byte* Staging::place_for(std::uint64_t bytes) {
  if (next_ + bytes > memory_.bytes()) next_ = 0;
  const std::uint64_t begin = next_, end = next_ + bytes;
  const auto is_there = [&](const Piece& piece) { return piece.begin < end && begin < piece.end; };
  while (std::ranges::any_of(under_way_, is_there)) finish_first();
  return memory_.data() + begin;
}

void Staging::note(void* target, std::uint64_t bytes, Stream stream) {
  const Event done = new_event();
  under_way_.push_back({next_, next_ + bytes, target, bytes, done});
  next_ += room(bytes);
  driver().require(driver().record(done, stream), "copying");
}

void Staging::finish_first() {
  const Piece piece = under_way_.front();
  driver().require(driver().await_event(piece.done), "copying");
  if (piece.target != nullptr) std::memcpy(piece.target, memory_.data() + piece.begin, piece.bytes);
  under_way_.pop_front();
  idle_.push_back(piece.done);
}

void Staging::finish() {
  while (!under_way_.empty()) finish_first();
  next_ = 0;
}

void Staging::abandon() {
  for (const Piece& piece : under_way_) idle_.push_back(piece.done);
  under_way_.clear();
  next_ = 0;
}

Event Staging::new_event() {
  if (idle_.empty()) {
    constexpr unsigned kWithoutTimes = 2;
    Event made = nullptr;
    driver().require(driver().create_event(&made, kWithoutTimes), "making an event");
    return made;
  }
  const Event event = idle_.back();
  idle_.pop_back();
  return event;
}

}  // namespace tenon::inline runtime::cuda

#include "runtime/cuda/transfers.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace tenon::inline runtime::cuda {
namespace {

constexpr unsigned kNonBlocking = 1, kWithoutTimes = 2;

}  // namespace

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) driver().free_host(data_);
}

bool PinnedMemory::try_allocate(std::uint64_t bytes) {
  if (bytes <= bytes_) return true;
  const Driver& cuda = driver();
  if (data_ != nullptr) cuda.free_host(data_);
  data_ = nullptr;
  bytes_ = 0;
  if (cuda.allocate_host(&data_, bytes, 0) != 0) {
    data_ = nullptr;
    return false;
  }
  bytes_ = bytes;
  return true;
}

void PinnedMemory::allocate(std::uint64_t bytes, const std::string& purpose) {
  if (try_allocate(bytes)) return;
  throw Error(concat("no pinned memory of the host for ", purpose), ErrorKind::OutOfMemory)
      .expected(format_bytes(bytes), " that the system does not move")
      .hint("a budget without --swap takes none; a larger one swaps less");
}

Transfers::~Transfers() {
  if (fork_ == nullptr) return;
  const Driver& cuda = driver();
  for (const Stream lane : lanes_) cuda.synchronise(lane);
  forget();
  cuda.destroy_event(fork_);
  for (const Stream lane : lanes_) cuda.destroy_stream(lane);
}

void Transfers::forget() {
  for (const Copy& copy : copies_) driver().destroy_event(copy.done);
  copies_.clear();
  by_end_.clear();
}

void Transfers::prepare(const Program& program, const BoundShapes& shapes, Address arena) {
  forget();
  if (program.transfers.empty()) return;
  const Driver& cuda = driver();
  if (fork_ == nullptr) {
    for (Stream& lane : lanes_)
      cuda.require(cuda.create_stream(&lane, kNonBlocking), "making a stream for copies");
    cuda.require(cuda.create_event(&fork_, kWithoutTimes), "making an event");
  }
  std::uint64_t host_bytes = 0;
  std::map<std::uint64_t, std::size_t> last_at;  // by offset in host memory
  for (const Program::Transfer& transfer : program.transfers) {
    Copy copy{arena + shapes.offsets[transfer.buffer],
              transfer.file_offset,
              shapes.bytes_of(transfer.buffer),
              transfer.begin_step,
              transfer.end_step,
              transfer.is_out};
    host_bytes = std::max(host_bytes, copy.host_offset + copy.bytes);
    const auto last = last_at.find(copy.host_offset);
    if (last != last_at.end() && copies_[last->second].is_out != copy.is_out)
      copy.predecessor = last->second;
    last_at[copy.host_offset] = copies_.size();
    cuda.require(cuda.create_event(&copy.done, kWithoutTimes), "making an event");
    copies_.push_back(copy);
  }
  by_end_.resize(copies_.size());
  std::iota(by_end_.begin(), by_end_.end(), std::size_t{0});
  std::ranges::stable_sort(by_end_, {}, [&](std::size_t k) { return copies_[k].end_step; });
  host_.allocate(host_bytes, "values that are swapped out of the GPU");
}

void Transfers::begin_run() {
  begun_ = ended_ = 0;
  awaited_ = {};
}

bool Transfers::before(std::size_t step, Stream steps) {
  // Evictions first, because a prefetch may reuse their space.
  const bool has_waited = wait(step, steps);
  if (begun_ == copies_.size() || copies_[begun_].begin_step > step) return has_waited;
  begin(step, steps);
  wait(step, steps);
  return true;
}

void Transfers::end_run(Stream steps) { before(std::numeric_limits<std::uint32_t>::max(), steps); }

// Copies are ordered after all steps enqueued so far: an eviction reads their results, and a
// prefetch overwrites their operands.
void Transfers::begin(std::size_t step, Stream steps) {
  const Driver& cuda = driver();
  cuda.require(cuda.record(fork_, steps), "swapping");
  std::array<bool, 2> waits_for_steps = {};
  for (; begun_ < copies_.size() && copies_[begun_].begin_step <= step; ++begun_) {
    const Copy& copy = copies_[begun_];
    const Stream lane = lanes_[lane_of(copy)];
    if (!waits_for_steps[lane_of(copy)]) cuda.require(cuda.wait_event(lane, fork_, 0), "swapping");
    waits_for_steps[lane_of(copy)] = true;
    if (copy.predecessor)
      cuda.require(cuda.wait_event(lane, copies_[*copy.predecessor].done, 0), "swapping");
    std::byte* const host = host_.data() + copy.host_offset;
    if (copy.bytes > 0)
      cuda.require(copy.is_out ? cuda.to_host(host, copy.arena, copy.bytes, lane)
                               : cuda.to_device(copy.arena, host, copy.bytes, lane),
                   "swapping");
    cuda.require(cuda.record(copy.done, lane), "swapping");
  }
}

// Copies of one direction complete in order: waiting for one includes its predecessors.
bool Transfers::wait(std::size_t step, Stream steps) {
  std::array<std::size_t, 2> wanted = awaited_;
  while (ended_ < by_end_.size() && copies_[by_end_[ended_]].end_step <= step &&
         by_end_[ended_] < begun_) {
    const std::size_t number = by_end_[ended_++];
    std::size_t& most = wanted[lane_of(copies_[number])];
    most = std::max(most, number + 1);
  }
  if (wanted == awaited_) return false;
  const Driver& cuda = driver();
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (wanted[lane] > awaited_[lane])
      cuda.require(cuda.wait_event(steps, copies_[wanted[lane] - 1].done, 0), "swapping");
  }
  awaited_ = wanted;
  return true;
}

double measured_link_bytes_per_s() {
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;
  constexpr int kRounds = 4;  // the first round meets an idle device
  const Driver& cuda = driver();
  DeviceMemory device;
  PinnedMemory host;
  device.allocate(kBytes, "measuring");
  host.allocate(kBytes, "measuring");
  Event begin = nullptr, end = nullptr;
  cuda.require(cuda.create_event(&begin, 0), "making an event");
  cuda.require(cuda.create_event(&end, 0), "making an event");
  double slowest = std::numeric_limits<double>::infinity();
  for (const bool is_out : {true, false}) {
    float least = std::numeric_limits<float>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      cuda.require(cuda.record(begin, nullptr), "timing");
      cuda.require(is_out ? cuda.to_host(host.data(), device.address(), kBytes, nullptr)
                          : cuda.to_device(device.address(), host.data(), kBytes, nullptr),
                   "timing");
      cuda.require(cuda.record(end, nullptr), "timing");
      cuda.require(cuda.synchronise(nullptr), "timing");
      float milliseconds = 0;
      cuda.require(cuda.elapsed(&milliseconds, begin, end), "timing");
      least = std::min(least, milliseconds);
    }
    slowest = std::min(slowest, static_cast<double>(kBytes) / (std::max(least, 1e-3F) / 1e3));
  }
  cuda.destroy_event(begin);
  cuda.destroy_event(end);
  return slowest;
}

}  // namespace tenon::inline runtime::cuda

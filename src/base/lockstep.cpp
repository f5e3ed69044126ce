#include "base/lockstep.h"

#include "base/error.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace tenon::inline base {
namespace {

// Messages in flight, by sender and receiver.
struct Mail {
  explicit Mail(int count) : size(count), boxes(static_cast<std::size_t>(count * count)) {}

  std::deque<std::vector<std::byte>>& box(int from, int to) {
    return boxes[static_cast<std::size_t>(from * size + to)];
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<std::vector<std::byte>>> boxes;
  std::exception_ptr failure;
};

struct RankAbandoned {};  // another rank has failed and reports the error

class Lockstep : public Communicator {
 public:
  Lockstep(Mail& mail, int rank) : mail_(mail), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return mail_.size; }

  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override {
    std::unique_lock lock(mail_.mutex);
    for (int k = 0; k < size(); ++k) {
      const auto bytes = given[static_cast<std::size_t>(k)];
      if (!bytes.empty()) mail_.box(rank_, k).emplace_back(bytes.begin(), bytes.end());
    }
    mail_.changed.notify_all();
    for (int k = 0; k < size(); ++k) {
      const auto place = taken[static_cast<std::size_t>(k)];
      if (place.empty()) continue;
      auto& box = mail_.box(k, rank_);
      mail_.changed.wait(lock, [&] { return mail_.failure || !box.empty(); });
      if (mail_.failure) throw RankAbandoned();
      TENON_ASSERT(box.front().size() == place.size(), "ranks agree on what they exchange");
      std::memcpy(place.data(), box.front().data(), place.size());
      box.pop_front();
    }
  }

  // Threads share one address space.
  bool may_see() const override { return true; }
  MemoryWindow window_of(std::span<const std::byte> mine) const override {
    return {1, 0, reinterpret_cast<std::uintptr_t>(mine.data()), mine.size()};
  }
  std::span<const std::byte> seen(int, const MemoryWindow& window) override {
    return {reinterpret_cast<const std::byte*>(window.offset), window.bytes};  // NOLINT
  }

 private:
  Mail& mail_;
  int rank_;
};

class OneRank : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override {
    const auto bytes = given[0];
    TENON_ASSERT(bytes.size() == taken[0].size(), "a rank takes what it gives itself");
    if (!bytes.empty()) std::memcpy(taken[0].data(), bytes.data(), bytes.size());
  }
};

}  // namespace

void run_in_lockstep(int rank_count, const std::function<void(Communicator& ranks)>& run) {
  Mail mail(rank_count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < rank_count; ++rank) {
    threads.emplace_back([&mail, &run, rank] {
      try {
        Lockstep ranks(mail, rank);
        run(ranks);
      } catch (const RankAbandoned&) {
      } catch (...) {
        const std::scoped_lock lock(mail.mutex);
        if (!mail.failure) mail.failure = std::current_exception();
        mail.changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (mail.failure) std::rethrow_exception(mail.failure);
}

std::unique_ptr<Communicator> one_rank() { return std::make_unique<OneRank>(); }

}  // namespace tenon::inline base

#pragma once

#include "base/communicator.h"
#include "base/shared_library.h"
#include "runtime/cuda/driver.h"

#include <functional>
#include <memory>
#include <string>

namespace tenon::inline runtime::cuda {

/// The NCCL functions in use, declared here: building needs neither its headers nor its library.
struct Nccl {
  using Comm = struct ncclComm*;
  struct UniqueId {
    char bytes[128] = {};
  };
  static constexpr int kByte = 0;  // ncclInt8

  SharedLibrary library;
  const char* (*error_text)(int) = nullptr;
  int (*get_version)(int*) = nullptr;
  int (*make_id)(UniqueId*) = nullptr;
  int (*init_rank)(Comm*, int size, UniqueId id, int rank) = nullptr;
  int (*destroy)(Comm) = nullptr;
  int (*async_error)(Comm, int*) = nullptr;
  int (*begin_group)() = nullptr;
  int (*end_group)() = nullptr;
  int (*send)(const void*, std::size_t count, int type, int to, Comm, Stream) = nullptr;
  int (*receive)(void*, std::size_t count, int type, int from, Comm, Stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t count, int type, Comm, Stream) = nullptr;

  /// Throws Error (Device) if the library is missing or invalid.
  explicit Nccl(const std::string& name = "libnccl.so.2");
  /// Throws Error (Device), naming the failed operation, unless the status is 0.
  void require(int status, const char* what) const;
  std::string version() const;
};

/// Communicator over GPU memory with NCCL, on a stream of its own. Calls return after the transfer
/// is complete. Reductions do not use NCCL: its order of additions follows its rings and trees,
/// Tenon's follows the ranks.
class NcclRanks : public Communicator {
 public:
  /// Stream of the work, callbacks to enter its device context and to wait for completion.
  struct Lane {
    Stream stream = nullptr;
    std::function<void()> enter, wait;
    std::shared_ptr<void> owner;
  };
  /// Connects the ranks of `control`, which only transports the NCCL id and is not used afterwards.
  NcclRanks(Communicator& control, std::unique_ptr<Nccl> library, Lane lane);
  ~NcclRanks() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override;
  using Communicator::all_gather;
  void all_gather(std::span<const std::byte> mine,
                  std::span<const std::span<std::byte>> all) override;
  std::string version() const { return library_->version(); }

 private:
  void wait();

  std::unique_ptr<Nccl> library_;
  Lane lane_;
  int rank_, size_;
  Nccl::Comm comm_ = nullptr;
};

/// Lane on the device of this process.
NcclRanks::Lane device_lane();

}  // namespace tenon::inline runtime::cuda

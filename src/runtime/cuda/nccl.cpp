#include "runtime/cuda/nccl.h"

#include "base/error.h"
#include "base/text.h"

#include <cstdlib>
#include <utility>

namespace tenon::inline runtime::cuda {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> all;
  if (const char* home = std::getenv("NCCL_HOME")) all.push_back(concat(home, "/lib"));
  for (std::string& folder : cuda_folders()) all.push_back(std::move(folder));
  return all;
}

}  // namespace

Nccl::Nccl(const std::string& name)
    : library("messages between NVIDIA GPUs (NCCL)", {name}, folders()) {
  library.find(error_text, "ncclGetErrorString");
  library.find(get_version, "ncclGetVersion");
  library.find(make_id, "ncclGetUniqueId");
  library.find(init_rank, "ncclCommInitRank");
  library.find(destroy, "ncclCommDestroy");
  library.find(async_error, "ncclCommGetAsyncError");
  library.find(begin_group, "ncclGroupStart");
  library.find(end_group, "ncclGroupEnd");
  library.find(send, "ncclSend");
  library.find(receive, "ncclRecv");
  library.find(all_gather, "ncclAllGather");
}

void Nccl::require(int status, const char* what) const {
  constexpr int kInProgress = 7;
  if (status == 0 || status == kInProgress) return;
  const char* text = error_text(status);
  throw Error(concat("NCCL failed: ", what), ErrorKind::Device)
      .got(text == nullptr ? concat("error ", status) : std::string(text))
      .hint("NCCL_DEBUG=WARN in the environment makes it say more");
}

std::string Nccl::version() const {
  int number = 0;
  get_version(&number);
  return concat(number / 10000, ".", number % 10000 / 100, ".", number % 100);
}

NcclRanks::NcclRanks(Communicator& control, std::unique_ptr<Nccl> library, Lane lane)
    : library_(std::move(library)),
      lane_(std::move(lane)),
      rank_(control.rank()),
      size_(control.size()) {
  lane_.enter();
  Nccl::UniqueId id;
  if (rank_ == 0) library_->require(library_->make_id(&id), "making a name for the ranks");
  control.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  library_->require(library_->init_rank(&comm_, size_, id, rank_), "meeting the other ranks");
}

NcclRanks::~NcclRanks() {
  if (comm_ != nullptr) library_->destroy(comm_);
}

void NcclRanks::wait() {
  lane_.wait();
  int error = 0;
  library_->require(library_->async_error(comm_, &error), "asking how messages fared");
  library_->require(error, "exchanging messages");
}

void NcclRanks::exchange(std::span<const std::span<const std::byte>> given,
                         std::span<const std::span<std::byte>> taken) {
  const Nccl& nccl = *library_;
  lane_.enter();
  nccl.require(nccl.begin_group(), "exchanging messages");
  int status = 0;
  const auto keep = [&](int one) { status = status == 0 ? one : status; };
  for (int k = 0; k < size_; ++k) {
    const auto sent = given[static_cast<std::size_t>(k)];
    const auto place = taken[static_cast<std::size_t>(k)];
    if (!sent.empty())
      keep(nccl.send(sent.data(), sent.size(), Nccl::kByte, k, comm_, lane_.stream));
    if (!place.empty())
      keep(nccl.receive(place.data(), place.size(), Nccl::kByte, k, comm_, lane_.stream));
  }
  keep(nccl.end_group());  // also after a failure, because the group would swallow the next one
  nccl.require(status, "exchanging messages");
  wait();
}

// NCCL gathers into one array of equal, adjacent parts.
void NcclRanks::all_gather(std::span<const std::byte> mine,
                           std::span<const std::span<std::byte>> all) {
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool is_next =
        all[k].size() == mine.size() && all[k].data() == all.front().data() + k * mine.size();
    if (!is_next) return Communicator::all_gather(mine, all);
  }
  if (mine.empty()) return;
  lane_.enter();
  library_->require(library_->all_gather(mine.data(), all.front().data(), mine.size(), Nccl::kByte,
                                         comm_, lane_.stream),
                    "gathering from all ranks");
  wait();
}

NcclRanks::Lane device_lane() {
  const Driver& cuda = driver();
  constexpr unsigned kNonBlocking = 1;
  Stream stream = nullptr;
  cuda.require(cuda.create_stream(&stream, kNonBlocking), "making a stream");
  return {stream, [] { driver(); },
          [stream] {
            const Driver& device = driver();
            device.require(device.synchronise(stream), "exchanging messages");
          },
          std::shared_ptr<void>(
              stream, [](void* made) { driver().destroy_stream(static_cast<Stream>(made)); })};
}

}  // namespace tenon::inline runtime::cuda

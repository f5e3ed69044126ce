#include "distributed/mpi.h"

#include "base/error.h"
#include "base/version.h"
#include "distributed/mpi_library.h"
#include "distributed/visible_memory.h"
#include "frontends/mapped_file.h"
#include "program/checksum.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>

namespace tenon::distributed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMessageBytes = std::size_t{1} << 30;  // MPI counts in int
constexpr int kDataTag = 1, kLifeTag = 2;
constexpr milliseconds kTick(100), kLifeEvery(400);
constexpr double kSilenceLimit_s = 6;
constexpr milliseconds kOthersSayIt(3000);
constexpr int kPollsAwake = 200;  // polls before a waiting thread sleeps
constexpr std::chrono::microseconds kShortestNap(50), kLongestNap(1000);
constexpr int kNapShare = 8;  // share of the time waited so far: bounds the delay of long waits
constexpr std::size_t kFewestVisibleBytes = std::size_t{16} << 10;

// Signal handlers can only access globals.
volatile std::sig_atomic_t is_stop_received = 0;

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

// Returns whether a process on this machine has exited or is a zombie.
bool is_dead(pid_t process) {
  if (kill(process, 0) != 0) return errno == ESRCH;
  std::ifstream in(concat("/proc/", process, "/stat"));
  std::string text;
  std::getline(in, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'Z';
}

// Returns the version and a checksum of the file that contains this code: the command or a library.
std::string own_program() {
  Dl_info about = {};
  if (dladdr(reinterpret_cast<const void*>(&host_name), &about) == 0) return kVersion;
  // The command's name may be relative to the initial working directory.
  const std::string path =
      about.dli_fname[0] == '/' ? std::string(about.dli_fname) : std::string("/proc/self/exe");
  return concat(kVersion, ":", checksum(frontends::MappedFile::open(path)->bytes()));
}

struct MpiLife {
  std::int64_t step = 0;
  std::int64_t is_ending = 0;
};

}  // namespace

struct MpiRanks::State {
  MpiLibrary mpi;
  MpiLibrary::Handle data = nullptr, lives = nullptr;  // communicators, one for each thread
  int rank = 0, size = 1;
  struct Peer {
    std::string host;
    pid_t process = 0;
    std::string name;
  };
  std::vector<Peer> peers;
  VisibleMemory visible;
  bool may_see = false;
  std::atomic<std::int64_t> step = 0;
  std::atomic<bool> is_ending = false, is_over = false;
  struct sigaction before = {};
  int exceptions = std::uncaught_exceptions();
  std::thread watch;

  void start();
  void watch_others();
  bool is_here(const Peer& peer) const {
    return peer.host == peers[static_cast<std::size_t>(rank)].host;
  }
  [[noreturn]] void give_up(int lost, const std::string& why, std::int64_t its_step);
};

void MpiRanks::State::start() {
  int provided = 0;
  if (mpi.init_thread(nullptr, nullptr, MpiLibrary::kThreadMultiple, &provided) != 0)
    throw Error("MPI cannot start", ErrorKind::Device);
  if (provided < MpiLibrary::kThreadMultiple)
    throw Error("this MPI takes no calls from several threads", ErrorKind::Device);
  mpi.comm_dup(mpi.world, &data);
  mpi.comm_dup(mpi.world, &lives);
  mpi.set_errhandler(data, mpi.errors_return);
  mpi.set_errhandler(lives, mpi.errors_return);
  mpi.comm_rank(data, &rank);
  mpi.comm_size(data, &size);
}

// Terminates all ranks: MPI_Abort makes the launcher end unresponsive ones.
void MpiRanks::State::give_up(int lost, const std::string& why, std::int64_t its_step) {
  const std::string text =
      concat("error: rank ", lost, " (", peers[static_cast<std::size_t>(lost)].name, ") ", why,
             "; its last step was ", its_step, ", rank ", rank, " has done ", step.load(),
             "\n  hint      --resume goes on from the last checkpoint\n");
  const auto written = write(STDERR_FILENO, text.data(), text.size());
  (void)written;
  mpi.abort(mpi.world, static_cast<int>(ErrorKind::Device));
  _exit(static_cast<int>(ErrorKind::Device));
}

// Heartbeat ring: each rank reports its step to the next one and monitors the previous one, so that
// the number of messages per rank does not grow with the number of ranks.
void MpiRanks::State::watch_others() {
  const int before_me = (rank + size - 1) % size, after_me = (rank + 1) % size;
  MpiLife mine, theirs;
  MpiLibrary::Handle sending = nullptr;
  Clock::time_point last_sent = Clock::now() - kLifeEvery, last_heard = Clock::now();
  while (!is_over) {
    if (Clock::now() - last_sent >= kLifeEvery) {
      int is_done = 1;
      if (sending != nullptr) mpi.testall(1, &sending, &is_done, nullptr);
      if (is_done != 0) {
        mine = {step, is_ending ? 1 : 0};
        mpi.isend(&mine, sizeof mine, mpi.byte, after_me, kLifeTag, lives, &sending);
        last_sent = Clock::now();
      }
    }
    for (int is_there = 1; is_there != 0;) {
      MpiLibrary::Status status = {};
      if (mpi.iprobe(before_me, kLifeTag, lives, &is_there, &status) != 0) is_there = 0;
      if (is_there == 0) break;
      mpi.recv(&theirs, sizeof theirs, mpi.byte, before_me, kLifeTag, lives, &status);
      last_heard = Clock::now();
    }
    const Peer& peer = peers[static_cast<std::size_t>(before_me)];
    if (theirs.is_ending == 0 && !is_over) {
      if (is_here(peer) && is_dead(peer.process)) give_up(before_me, "has died", theirs.step);
      if (seconds_from(last_heard) > kSilenceLimit_s)
        give_up(before_me, "does not answer", theirs.step);
    }
    std::this_thread::sleep_for(kTick);
  }
}

MpiRanks::MpiRanks() : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.start();
  struct sigaction action = {};
  action.sa_handler = [](int) { is_stop_received = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &s.before);
  // The format of this message is fixed: later messages may differ between program versions.
  std::vector<std::string> programs;
  for (const std::string& text :
       all_gather(concat(host_name(), " ", getpid(), " ", own_program()))) {
    State::Peer& peer = s.peers.emplace_back();
    std::istringstream words(text);
    words >> peer.host >> peer.process >> programs.emplace_back();
    peer.name = concat(peer.host, ", process ", peer.process);
  }
  require_one_program(programs);
  try_seeing();
  if (s.size > 1) s.watch = std::thread([&s] { s.watch_others(); });
}

MpiRanks::~MpiRanks() {
  State& s = *state_;
  s.is_ending = true;
  if (std::uncaught_exceptions() > s.exceptions) abort(static_cast<int>(ErrorKind::Internal));
  try {
    barrier();
  } catch (...) {  // the watch thread reports the reason
  }
  s.is_over = true;
  if (s.watch.joinable()) s.watch.join();
  s.mpi.finalize();
  sigaction(SIGTERM, &s.before, nullptr);
}

void MpiRanks::require_one_program(const std::vector<std::string>& programs) const {
  const auto other = std::ranges::find_if(
      programs, [&](const std::string& program) { return program != programs.front(); });
  if (other == programs.end()) return;
  // One rank reports the error; the launcher then ends the waiting ones.
  if (state_->rank != 0) std::this_thread::sleep_for(kOthersSayIt);
  const auto rank = static_cast<std::size_t>(other - programs.begin());
  throw Error(
      concat("rank ", rank, " (", state_->peers[rank].name, ") runs another program than rank 0"),
      ErrorKind::Usage)
      .expected(programs.front())
      .got(other->empty() ? "an older one" : *other)
      .hint("start all ranks with the same build of Tenon");
}

// Enables ranks of one machine to read each other's memory, if permissions allow it on all of them.
void MpiRanks::try_seeing() {
  State& s = *state_;
  constexpr std::uint64_t kSign = 0x74656e6f6e;
  const bool are_here =
      std::ranges::all_of(s.peers, [&](const State::Peer& peer) { return s.is_here(peer); });
  const std::shared_ptr<std::byte> memory = are_here ? s.visible.allocate(sizeof kSign) : nullptr;
  if (memory) std::memcpy(memory.get(), &kSign, sizeof kSign);
  const MemoryWindow mine =
      memory ? s.visible.window_of({memory.get(), sizeof kSign}) : MemoryWindow{};
  std::vector<MemoryWindow> windows(s.peers.size());
  std::vector<std::span<std::byte>> places;
  for (MemoryWindow& window : windows)
    places.push_back(std::as_writable_bytes(std::span(&window, 1)));
  Communicator::all_gather(std::as_bytes(std::span(&mine, 1)), places);
  bool sees_all = true;
  for (std::size_t k = 0; k < windows.size(); ++k) {
    const auto bytes = windows[k].region == 0 ? std::span<const std::byte>()
                                              : s.visible.view(s.peers[k].process, windows[k]);
    sees_all &=
        bytes.size() == sizeof kSign && std::memcmp(bytes.data(), &kSign, sizeof kSign) == 0;
  }
  const std::vector<std::string> all = all_gather(std::string(sees_all ? "yes" : "no"));
  s.may_see = std::ranges::count(all, "yes") == s.size;
}

std::shared_ptr<std::byte> MpiRanks::allocate_visible(std::size_t bytes) {
  const bool is_worth_it = state_->may_see && state_->size > 1 && bytes >= kFewestVisibleBytes;
  return is_worth_it ? state_->visible.allocate(bytes) : nullptr;
}

bool MpiRanks::may_see() const { return state_->may_see; }

MemoryWindow MpiRanks::window_of(std::span<const std::byte> mine) const {
  return state_->visible.window_of(mine);
}

std::span<const std::byte> MpiRanks::seen(int one, const MemoryWindow& window) {
  const pid_t process = state_->peers[static_cast<std::size_t>(one)].process;
  const std::span<const std::byte> bytes = state_->visible.view(process, window);
  if (bytes.size() != window.bytes)
    throw Error(concat("memory of rank ", one, " cannot be read"), ErrorKind::Device);
  return bytes;
}

int MpiRanks::rank() const { return state_->rank; }
int MpiRanks::size() const { return state_->size; }
void MpiRanks::set_step(std::int64_t step) { state_->step = step; }
bool MpiRanks::is_stop_requested() { return is_stop_received != 0; }

void MpiRanks::abort(int exit_code) {
  state_->is_ending = true;
  state_->mpi.abort(state_->mpi.world, exit_code);
  _exit(exit_code);
}

void MpiRanks::exchange(std::span<const std::span<const std::byte>> given,
                        std::span<const std::span<std::byte>> taken) {
  State& s = *state_;
  std::vector<MpiLibrary::Handle> requests;
  const auto require = [](int code) {
    if (code != 0)
      throw Error("a message between ranks was lost", ErrorKind::Device).got("MPI's error ", code);
  };
  // Starts with the next rank, so that not all ranks send to the same one first.
  for (int k = 0; k < s.size; ++k) {
    const int from = (s.rank + s.size - k) % s.size;
    std::span<std::byte> place = taken[static_cast<std::size_t>(from)];
    if (from == s.rank) {
      const auto own = given[static_cast<std::size_t>(from)];
      TENON_ASSERT(own.size() == place.size(), "a rank takes what it gives itself");
      if (!own.empty() && own.data() != place.data())
        std::memcpy(place.data(), own.data(), own.size());
      continue;
    }
    for (; !place.empty(); place = place.subspan(std::min(place.size(), kMessageBytes))) {
      require(s.mpi.irecv(place.data(), static_cast<int>(std::min(place.size(), kMessageBytes)),
                          s.mpi.byte, from, kDataTag, s.data, &requests.emplace_back()));
    }
  }
  for (int k = 1; k < s.size; ++k) {
    const int to = (s.rank + k) % s.size;
    std::span<const std::byte> bytes = given[static_cast<std::size_t>(to)];
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kMessageBytes))) {
      require(s.mpi.isend(bytes.data(), static_cast<int>(std::min(bytes.size(), kMessageBytes)),
                          s.mpi.byte, to, kDataTag, s.data, &requests.emplace_back()));
    }
  }
  int is_done = requests.empty() ? 1 : 0;
  Clock::time_point asleep;
  for (int polls = 0; is_done == 0; ++polls) {
    require(s.mpi.testall(static_cast<int>(requests.size()), requests.data(), &is_done, nullptr));
    if (is_done != 0) break;
    // Yields: the core may be computing for another rank, and polling takes time from it.
    if (polls < kPollsAwake) {
      std::this_thread::yield();
      continue;
    }
    if (polls == kPollsAwake) asleep = Clock::now();
    const auto nap =
        std::chrono::duration_cast<std::chrono::microseconds>((Clock::now() - asleep) / kNapShare);
    std::this_thread::sleep_for(std::clamp(nap, kShortestNap, kLongestNap));
  }
}

namespace {

// Returns the first variable that is set, or null.
const char* first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (const char* text = std::getenv(variable)) return text;
  }
  return nullptr;
}

// Returns the number of processes according to the launcher; null without a launcher.
const char* launched_size() { return first_set({"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE"}); }

int count_in(const char* text) { return text == nullptr ? 1 : std::max(1, std::atoi(text)); }

}  // namespace

bool is_launched() { return launched_size() != nullptr; }

int launched_rank_count() { return count_in(launched_size()); }

int ranks_on_machine() {
  return count_in(
      first_set({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}));
}

}  // namespace tenon::distributed

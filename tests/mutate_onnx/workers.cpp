#include "workers.h"

#include "base/error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace tenon::testing {
namespace {

constexpr int kPollMs = 50;
constexpr double kWallPerLimit = 20;  // a blocked worker does not use processor time

// Memory shared between a worker and its parent.
struct Shared {
  std::atomic<std::uint64_t> next;
  struct Slot {
    std::atomic<std::uint64_t> current;  // 0: idle
  } slots[64];
};

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

class Workers {
 public:
  Workers(const WorkerOptions& options, const std::function<std::string(std::uint64_t)>& work,
          const std::function<void(std::uint64_t, const std::string&)>& on_done,
          const std::function<void(const Accident&)>& on_accident)
      : options_(options), work_(work), on_done_(on_done), on_accident_(on_accident) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw Error("no memory to share with workers", ErrorKind::OutOfMemory);
    shared_ = new (memory) Shared{};
    shared_->next = options.first;
  }
  Workers(const Workers&) = delete;
  ~Workers() { munmap(shared_, sizeof(Shared)); }

  void run() {
    std::filesystem::create_directories(options_.log_folder);
    for (std::size_t slot = 0; slot < options_.jobs; ++slot) {
      workers_.emplace_back();
      start(slot);
    }
    while (alive_ > 0) {
      std::vector<pollfd> files;
      for (const Worker& worker : workers_)
        files.push_back({worker.pid > 0 ? worker.pipe : -1, POLLIN, 0});
      poll(files.data(), files.size(), kPollMs);
      for (std::size_t slot = 0; slot < workers_.size(); ++slot) {
        if (workers_[slot].pid > 0) look_after(slot);
      }
    }
  }

 private:
  struct Worker {
    pid_t pid = 0;
    int pipe = -1;
    std::string unread;
    std::uint64_t current = 0;  // as last seen
    double cpu_begin = 0, wall_begin = 0;
    std::string fate;
  };

  std::string log_of(std::size_t slot) const {
    return concat(options_.log_folder, "/worker-", slot, ".log");
  }

  void start(std::size_t slot) {
    int ends[2];
    if (pipe(ends) != 0) throw Error("no pipe to a worker", ErrorKind::Internal);
    const pid_t pid = fork();
    if (pid < 0) throw Error("no further process can be started", ErrorKind::Internal);
    if (pid == 0) {
      close(ends[0]);
      serve(slot, ends[1]);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    workers_[slot] = {pid, ends[0], {}, 0, 0, seconds_of(CLOCK_MONOTONIC), {}};
    ++alive_;
  }

  [[noreturn]] void serve(std::size_t slot, int results) {
    const int log = open(log_of(slot).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (;;) {
      const std::uint64_t number = shared_->next++;
      if (number >= options_.first + options_.count) _exit(0);
      shared_->slots[slot].current = number;
      (void)!ftruncate(log, 0);
      lseek(log, 0, SEEK_SET);
      const std::string line = work_(number);
      shared_->slots[slot].current = 0;
      write_all(results, concat(number, " ", line, "\n"));
    }
  }

  void read_results(Worker& worker) const {
    char block[4096];
    for (ssize_t got; (got = read(worker.pipe, block, sizeof block)) > 0;) {
      worker.unread.append(block, static_cast<std::size_t>(got));
    }
    for (std::size_t end; (end = worker.unread.find('\n')) != std::string::npos;) {
      const std::string line = worker.unread.substr(0, end);
      worker.unread.erase(0, end + 1);
      const std::size_t space = line.find(' ');
      on_done_(std::stoull(line.substr(0, space)), line.substr(space + 1));
    }
  }

  void look_after(std::size_t slot) {
    Worker& worker = workers_[slot];
    read_results(worker);
    int status = 0;
    if (waitpid(worker.pid, &status, WNOHANG) == worker.pid) return bury(slot, status);
    clockid_t clock{};
    if (clock_getcpuclockid(worker.pid, &clock) != 0) return;
    const double cpu = seconds_of(clock), wall = seconds_of(CLOCK_MONOTONIC);
    const std::uint64_t current = shared_->slots[slot].current;
    if (current != worker.current || current == 0) {
      worker.current = current;
      worker.cpu_begin = cpu;
      worker.wall_begin = wall;
      return;
    }
    if (cpu - worker.cpu_begin > options_.limit_s ||
        wall - worker.wall_begin > kWallPerLimit * options_.limit_s) {
      worker.fate = concat("took more than ", static_cast<int>(options_.limit_s), " s");
      kill(worker.pid, SIGKILL);
    }
  }

  void bury(std::size_t slot, int status) {
    Worker& worker = workers_[slot];
    read_results(worker);
    close(worker.pipe);
    worker.pid = 0;
    --alive_;
    const std::uint64_t number = shared_->slots[slot].current.exchange(0);
    if (number == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    std::string what = worker.fate;
    if (what.empty() && WIFSIGNALED(status))
      what = concat("crashed (signal ", WTERMSIG(status), ")");
    if (what.empty()) what = concat("ended with exit code ", WEXITSTATUS(status));
    std::ifstream log(log_of(slot));
    on_accident_({number, what, {std::istreambuf_iterator<char>(log), {}}});
    if (shared_->next < options_.first + options_.count) start(slot);
  }

  const WorkerOptions& options_;
  const std::function<std::string(std::uint64_t)>& work_;
  const std::function<void(std::uint64_t, const std::string&)>& on_done_;
  const std::function<void(const Accident&)>& on_accident_;
  Shared* shared_ = nullptr;
  std::vector<Worker> workers_;
  int alive_ = 0;
};

}  // namespace

void run_in_workers(const WorkerOptions& options,
                    const std::function<std::string(std::uint64_t)>& work,
                    const std::function<void(std::uint64_t, const std::string&)>& on_done,
                    const std::function<void(const Accident&)>& on_accident) {
  Workers(options, work, on_done, on_accident).run();
}

}  // namespace tenon::testing

#include "base/error.h"
#include "base/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tenon::new_file_test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class NewFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  // Sorted names of the folder's entries.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  using Names = std::vector<std::string>;

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) / ("new_file_" + std::to_string(getpid()));
};

void write(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

// Returns the error of writing to the path.
Error error_of(const std::string& path, const std::string& text = "x") {
  try {
    write(path, text);
  } catch (const Error& error) {
    return error;
  }
  return Error("none");
}

TEST_F(NewFileTest, AppearsOnlyWhenFinished) {
  {
    NewFile half(file("out"));
    half.out() << "half";
    EXPECT_FALSE(fs::exists(file("out")));
    EXPECT_EQ(names().size(), 1U);
  }
  EXPECT_EQ(names(), Names{});
  write(file("out"), "whole");
  EXPECT_EQ(names(), Names{"out"});
  EXPECT_EQ(content_of(file("out")), "whole");
  write(file("out"), "anew");
  EXPECT_EQ(content_of(file("out")), "anew");
}

// Larger than the buffer, in small pieces and in one.
TEST_F(NewFileTest, WritesMoreThanTheBuffer) {
  std::string text;
  for (int k = 0; k < 50000; ++k) text += std::to_string(k) + "\n";
  {
    NewFile pieces(file("pieces"));
    for (int k = 0; k < 50000; ++k) pieces.out() << k << '\n';
    pieces.finish();
  }
  write(file("whole"), text);
  EXPECT_EQ(content_of(file("pieces")), text);
  EXPECT_EQ(content_of(file("whole")), text);
}

TEST_F(NewFileTest, WritesIntoPipes) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  const int reader =
      ::open(file("pipe").c_str(), O_RDONLY | O_NONBLOCK);  // open() does not wait for a writer
  write(file("pipe"), "through");
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
  ::close(reader);
}

// A link is replaced by the file; the link's target does not change.
TEST_F(NewFileTest, ReplacesSymbolicLinks) {
  std::ofstream(file("precious")) << "precious";
  fs::create_symlink(file("precious"), file("out"));
  fs::create_symlink(file("precious"), file("out.part"));
  fs::create_symlink(file("nowhere"), file("dangling"));
  write(file("out"), "new");
  write(file("dangling"), "new");
  EXPECT_EQ(content_of(file("precious")), "precious");
  EXPECT_FALSE(fs::is_symlink(file("out")));
  EXPECT_EQ(content_of(file("out")), "new");
  EXPECT_FALSE(fs::exists(file("nowhere")));
}

TEST_F(NewFileTest, ConcurrentThreadsWriteOneFile) {
  NewFile first(file("out")), second(file("out")), third(file("out"));
  EXPECT_EQ(names().size(), 3U);
  first.out() << "first";
  second.out() << "second";
  third.out() << "third";
  second.finish();
  EXPECT_EQ(content_of(file("out")), "second");
  third.finish();
  first.finish();
  EXPECT_EQ(content_of(file("out")), "first");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(NewFileTest, ConcurrentProcessesUseDistinctPartFiles) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      const std::string text(100000, static_cast<char>('a' + child));
      for (int k = 0; k < 50; ++k) write(file("out"), text);
      _exit(0);
    } catch (const Error&) {
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string text = content_of(file("out"));
  ASSERT_EQ(text.size(), 100000U);
  EXPECT_EQ(text, std::string(100000, text[0]));
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(NewFileTest, RemovesPartFilesOfKilledProcesses) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    NewFile half(file("out"));
    half.out() << "half";
    half.out().flush();
    if (::write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(names().size(), 1U);
  write(file("out"), "while it lives");
  EXPECT_EQ(names().size(), 2U);  // the part file of a live process stays
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  waitpid(child, nullptr, 0);
  write(file("other"), "another file is no reason");
  EXPECT_EQ(names().size(), 3U);
  write(file("out"), "after it");
  EXPECT_EQ(names(), (Names{"other", "out"}));
  ::close(ready[0]);
  ::close(ready[1]);
}

// Only a plain file whose name has exactly this form counts as a part file.
TEST_F(NewFileTest, KeepsUnrelatedFiles) {
  const Names others = {".out.0123456789abcdef.par", ".out.0123456789abcdeF.part",
                        ".out.0123456789abcde.part", ".outer.0123456789abcdef.part", "out.part"};
  for (const std::string& name : others) std::ofstream(file(name)) << "mine";
  std::ofstream(file("mine")) << "mine";
  fs::create_symlink(file("mine"), file(".out.0123456789abcdee.part"));
  std::ofstream(file(".out.0123456789abcdef.part")) << "abandoned";
  write(file("out"), "x");
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(file(name))) << name;
  EXPECT_TRUE(fs::is_symlink(file(".out.0123456789abcdee.part")));
  EXPECT_EQ(content_of(file("mine")), "mine");
  EXPECT_FALSE(fs::exists(file(".out.0123456789abcdef.part")));
}

TEST_F(NewFileTest, LongestFileName) {
  const std::string name(255, 'n');
  write(file(name), "x");
  EXPECT_EQ(names(), Names{name});
}

// The message contains the system's reason.
TEST_F(NewFileTest, ReportsTheSystemsReason) {
  const Error none = error_of(file("no/such/folder"));
  EXPECT_EQ(none.kind(), ErrorKind::Usage);
  EXPECT_NE(std::string(none.what()).find("No such file or directory"), std::string::npos)
      << none.what();
  EXPECT_NE(std::string(error_of(file(".")).what()).find("Is a directory"), std::string::npos);
  std::ofstream(file("plain")) << "x";
  EXPECT_NE(std::string(error_of(file("plain/x")).what()).find("Not a directory"),
            std::string::npos);
  const Error full = error_of("/dev/full", std::string(1 << 20, 'x'));
  EXPECT_EQ(full.kind(), ErrorKind::Device);
  EXPECT_NE(std::string(full.what()).find("No space left on device"), std::string::npos)
      << full.what();
  EXPECT_NE(std::string(error_of("/dev/full").what()).find("No space left on device"),
            std::string::npos);
}

// A write beyond the size limit of a file throws and leaves neither the file nor its part file.
TEST_F(NewFileTest, RemovesThePartFileAfterAFailedWrite) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const Error error = error_of(file("out"), std::string(1 << 20, 'x'));
    _exit(std::string(error.what()).find("File too large") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names(), Names{});
}

}  // namespace
}  // namespace tenon::new_file_test

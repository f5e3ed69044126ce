#pragma once

#include "cli/command_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// Exit code and output of a command.
struct Called {
  int code = 0;
  std::string out, error;
};

inline Called call(std::vector<std::string> words) {
  words.insert(words.begin(), "tenon");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Called called;
  called.code = run_command_line(static_cast<int>(arguments.size()), arguments.data());
  called.error = ::testing::internal::GetCapturedStderr();
  called.out = ::testing::internal::GetCapturedStdout();
  return called;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Fixture with a temporary folder that is removed after the test.
class WithFolder : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  ("tenon_command_" + std::to_string(getpid()) + "_" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace tenon::cli

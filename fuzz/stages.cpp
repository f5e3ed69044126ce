// Fuzz target: text forms of loop nests, task lists, programs and plans. Any text parses or ends in
// an Error; parsed ones round-trip. The first byte selects the form.
#include "base/error.h"
#include "memory/problem.h"
#include "nests/parse.h"
#include "program/text.h"
#include "tasks/task_list.h"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace tenon;

std::string nests_again(std::string_view text) {
  std::string printed;
  for (const nests::LoopNest& nest : nests::parse_nests(text)) printed += to_string(nest);
  return printed;
}
std::string tasks_again(std::string_view text) { return to_string(parse_tasks(text)); }
std::string program_again(std::string_view text) { return to_string(parse_program_text(text)); }
std::string plan_read(std::string_view text) {
  memory::parse_plan(text, "text");  // printing a plan requires its problem
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string (*kStages[])(std::string_view) = {nests_again, tasks_again, program_again,
                                                          plan_read};
  if (size == 0) return 0;
  const auto again = kStages[data[0] % std::size(kStages)];
  std::string printed;
  try {
    printed = again({reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {
    return 0;
  }
  if (again != plan_read && again(printed) != printed) std::abort();
  return 0;
}

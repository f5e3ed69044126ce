#include "cli/command_line.h"
#include "cli/out.h"
#include "embed/call.h"
#include "tenon/tenon.h"

#include <string>
#include <vector>

using tenon::cli::KeptOutput;
using tenon::embed::call;
using tenon::embed::require;
using tenon::embed::text_for_caller;

extern "C" {

tenon_status tenon_command(const char* const* words, size_t count, int* exit_code, char** output,
                           char** messages) {
  return call([&] {
    require(words, "words");
    require(exit_code, "exit_code");
    std::vector<std::string> copies = {"tenon"};
    for (std::size_t k = 0; k < count; ++k) {
      require(words[k], "words");
      copies.emplace_back(words[k]);
    }
    std::vector<char*> arguments;
    for (std::string& word : copies) arguments.push_back(word.data());
    const KeptOutput kept;
    *exit_code = tenon::cli::run_command_line(static_cast<int>(arguments.size()), arguments.data());
    if (output != nullptr) *output = text_for_caller(kept.out());
    if (messages != nullptr) *messages = text_for_caller(kept.err());
  });
}
}

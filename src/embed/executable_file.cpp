#include "base/error.h"
#include "embed/loaded_program.h"
#include "program/appended.h"

#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace tenon::embed {
namespace {

// Returns the absolute path of the file mapped at an address. The loader's own path may be relative
// to a former working directory.
std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end,
                    &path_at) < 2)
      continue;
    if (wanted < begin || wanted >= end || path_at <= 0) continue;
    return line.substr(static_cast<std::size_t>(path_at));
  }
  return "";
}

}  // namespace

Program read_embedded_program() {
  const void* here = reinterpret_cast<const void*>(&tenon_program_self);
  std::string path = mapped_file(here);
  Dl_info info{};
  if (path.empty() && dladdr(here, &info) != 0 && info.dli_fname != nullptr) path = info.dli_fname;
  if (path.empty())
    throw Error("cannot tell which file this library was loaded from", ErrorKind::Usage);
  return read_appended(path);
}

}  // namespace tenon::embed

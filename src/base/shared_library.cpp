#include "base/shared_library.h"

#include "base/error.h"
#include "base/text.h"

#include <dlfcn.h>

#include <cstdlib>

namespace tenon::inline base {

SharedLibrary::SharedLibrary(std::string_view purpose, const std::vector<std::string>& names,
                             const std::vector<std::string>& folders) {
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    for (std::size_t k = 0; handle_ == nullptr && k < folders.size(); ++k) {
      handle_ = dlopen((folders[k] + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle_ == nullptr) continue;
    name_ = name;
    return;
  }
  throw Error(concat("no library for ", purpose), ErrorKind::Device)
      .expected(join(names, " or "))
      .hint("install it, or name its folder in LD_LIBRARY_PATH or its toolkit in CUDA_HOME");
}

void* SharedLibrary::address(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) {
    throw Error(concat("the library ", name_, " is of another version"), ErrorKind::Device)
        .expected("a function ", name);
  }
  return found;
}

std::vector<std::string> cuda_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.push_back(concat(home, "/lib64"));
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

}  // namespace tenon::inline base

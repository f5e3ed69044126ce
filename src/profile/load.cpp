#include "profile/load.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/document.h"
#include "frontends/mapped_file.h"

namespace tenon::profile {

Profile load_profile(const std::string& path) {
  const auto file = frontends::MappedFile::open(path);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  if (is_profile(text.substr(0, 256))) return parse_profile(text, path);
  if (const documents::DocumentFormat* format =
          documents::recognised_format(text.substr(0, 4096))) {
    std::optional<Profile> profile = format->read(text, path)->profile();
    if (profile) return *std::move(profile);
  }
  throw Error("no profile that can be read", ErrorKind::InvalidModel)
      .at(path)
      .expected("a file that `tenon profile --save` wrote, or a profile of MegEngine's");
}

}  // namespace tenon::profile

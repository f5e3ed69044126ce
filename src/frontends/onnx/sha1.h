#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tenon::frontends::onnx {

/// Returns the SHA-1 digest in lower-case hex, the checksum of external data in ONNX files.
std::string sha1_hex(std::span<const std::byte> bytes);

}  // namespace tenon::frontends::onnx

#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tenon::onnx {

/// The SHA-1 digest in lower-case hex: what ONNX files give as the checksum of external data.
std::string sha1_hex(std::span<const std::byte> bytes);

}  // namespace tenon::onnx

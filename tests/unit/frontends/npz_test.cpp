#include "base/error.h"
#include "frontends/numpy/npy.h"
#include "frontends/numpy/npz.h"
#include "frontends/numpy/zip.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::frontends::numpy::npz_test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::ostringstream out;
  ZipWriter zip(out);
  for (const auto& [name, content] : files) zip.add(name, bytes_of(content));
  zip.finish();
  return out.str();
}

// Compresses the only entry of a stored archive, as `zip -9` would.
std::string deflated(std::string archive, const std::string& content) {
  std::string packed(compressBound(static_cast<uLong>(content.size())) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);

  const auto put = [&](std::size_t at, std::uint64_t value, int width) {
    for (int k = 0; k < width; ++k)
      archive[at + std::size_t(k)] = static_cast<char>(value >> (8 * k));
  };
  const std::size_t start = archive.find(content);
  archive.replace(start, content.size(), packed);
  const std::size_t directory = archive.find("PK\1\2");
  put(8, 8, 2), put(18, packed.size(), 4);
  put(directory + 10, 8, 2), put(directory + 20, packed.size(), 4);
  put(archive.size() - 6, directory, 4);
  return archive;
}

std::string message_of(const std::string& archive) {
  return error_summary([&] { read_npz(bytes_of(archive)); });
}

TEST(Npz, RoundTripsAFile) {
  const std::string path = ::testing::TempDir() + "tenon_npz_test.npz";
  const Tensor a = Tensor::of(DType::F32, {2}, std::vector<double>{1, 2});
  const Tensor b = Tensor::of_strings({1}, {"text"});
  write_npz_file({{"a", a}, {"folder/b", b}}, path);
  const std::map<std::string, Tensor> read = read_npz_file(path);
  std::filesystem::remove(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_TRUE(identical(read.at("a"), a));
  EXPECT_TRUE(identical(read.at("folder/b"), b));
}

TEST(Npz, InflatesArrays) {
  const Tensor zeros(DType::F64, {100, 100});
  const std::string content = write_npy(zeros);
  const std::string archive = deflated(archive_of({{"x.npy", content}}), content);
  EXPECT_LT(archive.size(), 1000u);
  EXPECT_TRUE(identical(read_npz(bytes_of(archive)).at("x"), zeros));
}

TEST(Npz, RefusesDamagedArchives) {
  const std::string content = write_npy(Tensor(DType::F32, {16}));
  const std::string good = archive_of({{"x.npy", content}});
  EXPECT_EQ(message_of(""), "npz: not a zip archive, or cut short");
  EXPECT_EQ(message_of(good.substr(0, good.size() - 1)), "npz: not a zip archive, or cut short");

  std::string flipped = good;
  flipped[good.find(content) + content.size() - 1] ^= 1;
  EXPECT_EQ(message_of(flipped), "npz: the checksum of 'x.npy' is wrong");

  std::string moved = good;
  moved[good.size() - 6] ^= 1;
  EXPECT_NE(message_of(moved), "no error");

  std::string far = good;
  far.replace(good.find("PK\1\2") + 42, 4, "\xf0\xff\xff\x7f");
  EXPECT_EQ(message_of(far), "npz: 'x.npy' is not where or what the archive's directory says");

  std::string cut = deflated(good, content);
  cut[cut.find("PK\1\2") + 24] ^= 1;  // another uncompressed size
  EXPECT_EQ(message_of(cut), "npz: 'x.npy' is not where or what the archive's directory says");
  cut[22] ^= 1;  // in its local header as well
  EXPECT_EQ(message_of(cut), "npz: 'x.npy' does not unpack to its size");

  EXPECT_EQ(message_of(archive_of({{"x.npy", content}, {"x.npy", content}})),
            "npz: two arrays are called 'x'");
  EXPECT_EQ(message_of(archive_of({{"x.npy", "no array"}})), "npy: not a NumPy array");
}

TEST(Npz, RefusesTruncatedArchives) {
  const std::string content = write_npy(Tensor(DType::F32, {3}));
  const std::string archive = deflated(archive_of({{"x.npy", content}}), content);
  for (std::size_t size = 0; size < archive.size(); ++size) {
    EXPECT_NE(message_of(archive.substr(0, size)), "no error") << size;
  }
}

TEST(Npz, RefusesZipBombs) {
  const std::string content = write_npy(Tensor(DType::U8, {1 << 20}));
  std::string archive = deflated(archive_of({{"x.npy", content}}), content);
  // The directory claims 3 GiB for a kilobyte of data.
  archive.replace(archive.find("PK\1\2") + 24, 4, std::string("\x00\x00\x00\xc0", 4));
  EXPECT_EQ(message_of(archive), "npz: 'x.npy' unpacks to far more than it is");
}

TEST(Npz, MapsStoredArrays) {
  const std::string archive = archive_of({{"x.npy", write_npy(Tensor(DType::F32, {16}))}});
  ZipReader reader(bytes_of(archive));
  const UnpackedEntry content = reader.unpacked(reader.entries().at(0));
  EXPECT_EQ(content.owner, nullptr);
  EXPECT_GE(content.bytes.data(), bytes_of(archive).data());
  EXPECT_LE(content.bytes.data() + content.bytes.size(), bytes_of(archive).data() + archive.size());
}

// A stream without seeking, like a pipe.
TEST(Npz, WritesWithoutSeeking) {
  struct OneWay : std::stringbuf {
    pos_type seekoff(off_type, std::ios::seekdir, std::ios::openmode) override {
      return pos_type(-1);
    }
    pos_type seekpos(pos_type, std::ios::openmode) override { return pos_type(-1); }
  } pipe;
  std::ostream out(&pipe);
  ZipWriter zip(out);
  const std::string content = write_npy(Tensor::of(DType::F32, {2}, std::vector<double>{1, 2}));
  zip.add("a.npy", bytes_of(content));
  zip.add("b.npy", bytes_of(content));
  zip.finish();
  const std::string archive = pipe.str();
  EXPECT_EQ(read_npz(bytes_of(archive)).at("b").reals(), (std::vector<double>{1, 2}));
}

TEST(Npz, EmptyArchive) {
  std::string claims = archive_of({});
  claims[10] = 1;  // a missing entry
  EXPECT_EQ(message_of(claims), "npz: the archive's directory is damaged");

  EXPECT_TRUE(read_npz(bytes_of(archive_of({}))).empty());
}

TEST(Npz, IgnoresOtherFiles) {
  EXPECT_TRUE(read_npz(bytes_of(archive_of({{"notes.txt", "hello"}}))).empty());
}

}  // namespace
}  // namespace tenon::frontends::numpy::npz_test

// cuDNN convolutions against a test library (tests/fixtures/fake_cudnn.cpp) that supports only a
// given set of operation graphs.
#include "base/error.h"
#include "runtime/cuda/library_step.h"
#include "unit/error_text.h"
#include "unit/runtime/on_device.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cuda_dnn_test {
namespace {

using testing::in_own_process;

class CudaDnn : public testing::FakeDeviceTest {};

class FakeCudnn {
 public:
  explicit FakeCudnn(const std::vector<std::string>& known) {
    const std::string path = testing::new_library_path("libcudnn.so.9");
    if (!std::filesystem::exists(path))
      testing::compile_library("-Wl,-soname,libcudnn.so.9 tests/fixtures/fake_cudnn.cpp", path);
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw Error(dlerror());
    for (const std::string& one : known) call<void(const char*)>("fakeCudnnKnows")(one.c_str());
  }
  void want_workspace(std::int64_t bytes) { call<void(std::int64_t)>("fakeCudnnWants")(bytes); }
  std::string done() { return call<const char*()>("fakeCudnnDone")(); }

 private:
  template <class Function>
  Function* call(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
};

// Two images of 3 x 4 x 2, three windows of 2 x 2 with a row of zeros before.
struct Trial {
  std::vector<float> image, weights, bias, residual;
  std::vector<std::int64_t> extents = {2, 3, 4, 2, 3, 2, 2, 3, 3, 1, 0, 0, 0, 1, 1, 1, 1, 1};
  LibraryCall call;

  Trial() : image(48), weights(24), bias(3), residual(54) {
    float next = -0.5F;
    for (std::vector<float>* each : {&image, &weights, &bias, &residual}) {
      for (float& number : *each) number = next = next > 1 ? next - 1.75F : next + 0.25F;
    }
    call.kind = LibraryCall::Kind::Convolution;
    call.has_bias = call.has_residual = call.is_rectified = true;
  }

  std::unique_ptr<cuda::LibraryStep> made() const { return cuda::make_convolution(call, extents); }
  std::vector<float> result() const {
    std::vector<float> result(54);
    std::vector<std::uint64_t> buffers;
    for (const std::vector<float>* each : {&image, &weights, &bias, &residual})
      buffers.push_back(reinterpret_cast<std::uint64_t>(each->data()));
    buffers.push_back(reinterpret_cast<std::uint64_t>(result.data()));
    made()->enqueue(nullptr, buffers, 0, 0);
    return result;
  }
  std::vector<float> expected() const {
    std::vector<float> result = residual;
    for (std::size_t at = 0; at < result.size(); ++at) {
      const std::size_t k = at % 3, x = at / 3 % 3, y = at / 9 % 3, n = at / 27;
      result[at] += bias[k];
      for (std::size_t r = y == 0 ? 1 : 0; r < 2; ++r) {
        for (std::size_t s = 0; s < 2; ++s) {
          for (std::size_t c = 0; c < 2; ++c)
            result[at] += image[((n * 3 + y + r - 1) * 4 + x + s) * 2 + c] *
                          weights[((k * 2 + r) * 2 + s) * 2 + c];
        }
      }
      result[at] = std::max(result[at], 0.0F);
    }
    return result;
  }
};

// Numbers are quarters: sums are exact in any order.
void expect_done(const std::vector<std::string>& known, const std::string& done) {
  in_own_process([&](testing::FakeCuda&) {
    FakeCudnn library(known);
    const Trial trial;
    EXPECT_EQ(trial.result(), trial.expected());
    EXPECT_EQ(library.done(), done);
  });
}

TEST_F(CudaDnn, FusesTheEpilogueInEitherOrder) {
  expect_done({"sum", "sum+residual+bias+relu", "sum+bias+residual+relu"},
              "sum+bias+residual+relu");
  expect_done({"sum", "sum+residual+bias+relu"}, "sum+residual+bias+relu");
}

TEST_F(CudaDnn, SeparatesUnsupportedEpilogues) { expect_done({"sum"}, "sum bias residual relu"); }

TEST_F(CudaDnn, UsesLargeWorkspacesAsALastResort) {
  in_own_process([](testing::FakeCuda&) {
    FakeCudnn library({"sum", "sum+bias+residual+relu"});
    library.want_workspace(std::int64_t{1} << 30);
    EXPECT_EQ(Trial().made()->workspace_bytes(0), std::uint64_t{1} << 30);
  });
}

TEST_F(CudaDnn, ReportsUnsupportedConvolutions) {
  in_own_process([](testing::FakeCuda&) {
    FakeCudnn library({});
    EXPECT_NE(error_text([] { Trial().made(); }).find("2 images of 3 x 4 x 2"), std::string::npos);
  });
}

}  // namespace
}  // namespace tenon::cuda_dnn_test

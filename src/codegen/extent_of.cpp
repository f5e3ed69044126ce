#include "codegen/extent_of.h"

#include "base/error.h"
#include "ir/dim_fold.h"

namespace tenon::codegen {
namespace {

class ExtentArithmetic : public DimArithmetic<Extent> {
 public:
  explicit ExtentArithmetic(const std::map<std::string, std::size_t>& symbols)
      : symbols_(symbols) {}
  Extent number(std::int64_t value) override { return value; }
  Extent symbol(const std::string& name) override {
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) {
      throw Error("an extent is known only when the data is", ErrorKind::Unsupported).got(name);
    }
    return Extent::symbol(found->second);
  }
  Extent add(Extent a, Extent b) override { return Extent::combined(Extent::Op::Add, a, b); }
  Extent multiply(Extent a, Extent b) override {
    return Extent::combined(Extent::Op::Multiply, a, b);
  }
  Extent floor_divide(Extent a, Extent b) override {
    return Extent::combined(Extent::Op::FloorDivide, a, b);
  }
  Extent minimum(Extent a, Extent b) override {
    return Extent::combined(Extent::Op::Minimum, a, b);
  }
  Extent maximum(Extent a, Extent b) override {
    return Extent::combined(Extent::Op::Maximum, a, b);
  }

 private:
  const std::map<std::string, std::size_t>& symbols_;
};

}  // namespace

Extent extent_of(const Dim& dim, const std::map<std::string, std::size_t>& symbols) {
  ExtentArithmetic arithmetic(symbols);
  return fold(tree_of(dim), arithmetic);
}

}  // namespace tenon::codegen

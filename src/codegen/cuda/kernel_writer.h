#pragma once

#include "base/error.h"
#include "codegen/cuda/source_writer.h"
#include "codegen/cuda/value_writer.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::codegen::cuda {

/// Writes one kernel. kernel_groups.cpp has the code that a thread group executes cooperatively,
/// kernel_statements.cpp the single statements.
class KernelWriter {
 public:
  explicit KernelWriter(const BoundNest& kernel);

  std::string run();
  /// Returns a function that runs the kernel on a processor.
  std::string emulation() const;

 private:
  struct PackedStore {
    std::string pack, target, type;
  };
  // Elements of one load along a loop that a thread keeps in registers, by pass.
  struct KeptRow {
    Scalar load;
    std::size_t loop;
    std::string name;
  };
  // Distribution of a row of known length over threads: each takes `lanes` neighbours in every
  // pass, the same elements in every loop.
  struct RowPasses {
    std::int64_t count = 0;
    unsigned lanes = 1;
    bool have_locals = false;  // each lane has its own locals
  };

  static void collect_written(const Block& block, std::set<std::size_t>& written);
  std::string parameters() const;
  std::string together() const;
  std::string cluster() const;
  unsigned groups() const { return binding_.threads / binding_.group; }
  bool is_shared() const { return binding_.group > 1; }
  void sync() { lines_.add(concat("group_sync<", binding_.group, ">();")); }
  void declare();
  void write_positions(const std::vector<const Statement*>& loops, std::string number,
                       const std::string& type, unsigned lanes);
  static bool is_short(const std::vector<const Statement*>& loops);
  std::string count_text(const std::vector<const Statement*>& loops, const std::string& type,
                         unsigned lanes) const;
  void write_items();
  void write_shared(const Block& block);
  void write_block(const Block& block);
  void write_loop(const Statement& loop);

  std::optional<RowPasses> row_passes(const LoopBand& band) const;
  bool folds_neighbours(const LoopBand& band, unsigned lanes) const;
  std::optional<std::string> near_index(const Scalar& load, const Statement& loop,
                                        unsigned lanes) const;
  void load_neighbours(const Statement& fold);
  void write_passes(const Statement& loop, const RowPasses& passes,
                    const std::function<void()>& body);
  void keep_rows(const Block& block);
  void write_spread(const LoopBand& band, const std::function<void()>& body);
  void write_shared_folds(const LoopBand& band);
  void write_lane_folds(const LoopBand& band);
  static std::string fold_name(Reduction reduction, DType dtype);

  void in_lanes(const Statement& statement, const std::function<void()>& write);
  void load_packs(const Statement& statement);
  void finish_store();
  bool is_inside_together(const Scalar& load, std::size_t loop) const;
  bool is_packed(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop) const;
  void write_define(const Statement& statement);
  void write_fold(const Statement& statement);
  static const Scalar& rounded_once(const Statement& store, const NestBuffer& to);
  void write_store(const Statement& statement);
  void write_update(const Statement& statement);

  const LoopNest& nest_;
  const GridBinding& binding_;
  const std::string& symbol_;
  Lines lines_;
  ValueWriter values_;
  std::set<std::size_t> placed_;     // locals that track the index of an extreme (argmax, argmin)
  std::set<std::size_t> exchanged_;  // buffers that threads of a group both write and read
  std::optional<PackedStore> store_;
  unsigned lanes_ = 1;  // neighbours per statement, along `lane_loop_`
  std::size_t lane_loop_ = 0;
  const Statement* near_loop_ = nullptr;  // loop along which lanes reduce their neighbours
  std::unordered_map<const ScalarNode*, ValueWriter::PackedLoad> near_;
  std::vector<KeptRow> rows_;
  std::string pass_;  // name of the current pass over a row
  std::size_t unique_ = 0;
};

}  // namespace tenon::codegen::cuda

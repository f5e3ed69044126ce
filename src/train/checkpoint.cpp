#include "train/checkpoint.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "models/inputs.h"
#include "train/checkpoint_file.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

namespace tenon::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFile = "checkpoint.safetensors";
constexpr const char* kList = "checkpoint.json";
constexpr const char* kListFormat = "tenon checkpoint list 1";
constexpr const char* kPiece =
    "piece:";  // metadata key prefix: the file has a piece of NAME, whose whole has this shape

std::string in_folder(const std::string& folder, const std::string& file) {
  return (fs::path(folder) / file).string();
}

std::string rank_file(std::int64_t step, int rank, int size) {
  return concat("checkpoint-", step, "-", rank, "-of-", size, ".safetensors");
}

// Removes files of earlier checkpoints once a newer one is complete.
void remove_others(const std::string& folder, const std::set<std::string>& used) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name == kFile || name == kList ||
                         (name.starts_with("checkpoint-") && name.ends_with(".safetensors"));
    if (is_ours && !used.contains(name)) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path, ignored);
}

struct List {
  std::int64_t step = 0;
  std::vector<std::string> files;
};

List read_list(const std::string& path) {
  std::ifstream in(path);
  List list;
  try {
    const Json json = Json::parse(in);
    if (json.at("format").get<std::string>() != kListFormat)
      throw Error("this is no list of a checkpoint's files").expected(kListFormat).at(path);
    list.step = json.at("step").get<std::int64_t>();
    for (const Json& file : json.at("files")) {
      list.files.push_back(file.get<std::string>());
      if (list.files.back().find('/') != std::string::npos)
        throw Error("a checkpoint's files lie beside their list").at(path).got(list.files.back());
    }
  } catch (const Json::exception& error) {
    throw Error("the list of a checkpoint's files is damaged").at(path).got(error.what());
  }
  if (list.files.empty()) throw Error("the list of a checkpoint's files is empty").at(path);
  return list;
}

Shape shape_of(const std::string& text, const std::string& path) {
  Shape shape;
  for (const std::string& word : split(text, 'x')) {
    if (word.empty()) continue;
    const std::optional<std::int64_t> extent = parse_integer(word);
    if (!extent || *extent < 0) throw Error("a shape cannot be read").at(path).got(text);
    shape.push_back(*extent);
  }
  return shape;
}

std::string text_of(const Shape& shape) {
  std::vector<std::string> words;
  for (std::int64_t extent : shape) words.push_back(std::to_string(extent));
  return join(words, "x");
}

// Concatenates the pieces of all ranks, without the padding of the last one.
Tensor joined(const std::string& name, const std::vector<Tensor>& pieces, const Shape& shape) {
  Tensor whole(pieces.front().dtype(), shape);
  std::size_t at = 0;
  for (const Tensor& piece : pieces) {
    const std::size_t size = std::min(piece.byte_size(), whole.byte_size() - at);
    if (size > 0) std::memcpy(whole.mutable_bytes().data() + at, piece.bytes().data(), size);
    at += size;
  }
  if (at != whole.byte_size())
    throw Error(concat("the checkpoint has not all of state '", name, "'"))
        .expected(whole.byte_size(), " bytes")
        .got(at);
  return whole;
}

Checkpoint read_listed(const std::string& folder) {
  const std::string list_path = in_folder(folder, kList);
  Checkpoint all;
  std::map<std::string, std::pair<Shape, std::vector<Tensor>>> pieces;
  const List list = read_list(list_path);
  for (std::size_t k = 0; k < list.files.size(); ++k) {
    const std::string path = in_folder(folder, list.files[k]);
    std::map<std::string, std::string> texts;
    Checkpoint share = read_checkpoint_file(path, &texts);
    if (share.step != list.step)
      throw Error("a file of the checkpoint is of another step")
          .at(path)
          .expected(list.step)
          .got(share.step);
    if (k == 0) all = Checkpoint(share), all.states.clear();
    for (auto& [name, tensor] : share.states) {
      const auto text = texts.find(kPiece + name);
      if (text == texts.end()) {
        all.states.emplace_back(name, tensor);
        continue;
      }
      auto& [shape, found] = pieces[name];
      shape = shape_of(text->second, path);
      found.push_back(tensor);
    }
  }
  for (const auto& [name, made] : pieces)
    all.states.emplace_back(name, joined(name, made.second, made.first));
  return all;
}

// Returns the states that this rank writes: shares of about equal bytes, in the order of the
// states.
States share_of(const States& states, const Communicator& ranks) {
  std::size_t total = 0, before = 0;
  for (const auto& [name, tensor] : states) total += tensor.byte_size() + 1;
  States share;
  for (const auto& [name, tensor] : states) {
    const auto rank = static_cast<int>(before * static_cast<std::size_t>(ranks.size()) / total);
    if (rank == ranks.rank()) share.emplace_back(name, tensor);
    before += tensor.byte_size() + 1;
  }
  return share;
}

}  // namespace

void CurveSums::add(double step_loss, double step_accuracy) {
  loss += step_loss;
  accuracy += step_accuracy;
  ++count;
}

CurvePoint CurveSums::means(std::int64_t step) const {
  const auto divisor = static_cast<double>(std::max<std::int64_t>(1, count));
  return {step, loss / divisor, accuracy / divisor, false};
}

std::string checkpoint_path(const std::string& folder) {
  const std::string list = in_folder(folder, kList);
  return fs::exists(list) ? list : in_folder(folder, kFile);
}

bool has_checkpoint(const std::string& folder) { return fs::exists(checkpoint_path(folder)); }

void write_checkpoint(const Checkpoint& checkpoint, const std::string& folder) {
  models::make_folder(folder);
  write_checkpoint_file(checkpoint, in_folder(folder, kFile));
  remove_others(folder, {kFile});
}

void write_checkpoint(const Checkpoint& checkpoint, const std::vector<StatePiece>& pieces,
                      const std::string& folder, Communicator& ranks) {
  std::string failure;
  try {
    models::make_folder(folder);
    Checkpoint share = checkpoint;
    share.states = share_of(checkpoint.states, ranks);
    if (ranks.rank() != 0) share.curve.clear();
    std::map<std::string, std::string> texts;
    for (const StatePiece& piece : pieces) {
      share.states.emplace_back(piece.whole, piece.piece);
      texts[kPiece + piece.whole] = text_of(piece.shape);
    }
    write_checkpoint_file(
        share, in_folder(folder, rank_file(checkpoint.step, ranks.rank(), ranks.size())), texts);
  } catch (const Error& error) {
    failure = error.what();
  }
  const std::vector<std::string> failures = ranks.all_gather(failure);
  for (std::size_t k = 0; k < failures.size(); ++k) {
    if (failures[k].empty()) continue;
    throw Error("a rank cannot write its part of the checkpoint", ErrorKind::Usage)
        .at("rank ", k)
        .got(failures[k])
        .hint("the folder has to be one that all ranks see");
  }
  if (ranks.rank() == 0) {
    Json json{{"format", kListFormat}, {"step", checkpoint.step}, {"files", Json::array()}};
    std::set<std::string> used = {kList};
    for (int rank = 0; rank < ranks.size(); ++rank) {
      json["files"].push_back(rank_file(checkpoint.step, rank, ranks.size()));
      used.insert(rank_file(checkpoint.step, rank, ranks.size()));
    }
    NewFile file(in_folder(folder, kList));
    file.out() << json.dump(2) << "\n";
    file.finish();
    remove_others(folder, used);
  }
  ranks.barrier();
}

Checkpoint read_checkpoint(const std::string& folder) {
  const std::string file = in_folder(folder, kFile);
  if (!fs::exists(in_folder(folder, kList))) return read_checkpoint_file(file);
  Checkpoint listed = read_listed(folder);
  if (!fs::exists(file)) return listed;
  // Both exist if a process ended between writing one and removing the other.
  Checkpoint single = read_checkpoint_file(file);
  return single.step > listed.step ? single : listed;
}

}  // namespace tenon::train

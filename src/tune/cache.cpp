#include "tune/cache.h"

#include "base/error.h"
#include "base/user_folder.h"

#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace tenon::tune {
namespace {

constexpr int kApplication = 0x54454e4f;  // "TENO"
constexpr int kCacheVersion = 1;
constexpr int kPatienceMs = 10000;  // timeout while another process writes

constexpr const char* kTables = R"(
create table kernels (
  id integer primary key, machine text not null, generator text not null, threads integer not null,
  work text not null, name text not null, symbol text not null, flops real not null,
  unique (machine, generator, threads, work));
create table timings (
  kernel integer not null references kernels (id) on delete cascade, at integer not null,
  candidate text not null, seconds real not null, runs integer not null,
  primary key (kernel, at, candidate)) without rowid;
create table ranges (
  kernel integer not null references kernels (id) on delete cascade,
  lo integer not null, hi integer not null, candidate text not null,
  primary key (kernel, lo)) without rowid;
)";

// A prepared statement with its bindings and result columns.
class SqlStatement {
 public:
  SqlStatement(sqlite3* database, const char* text) {
    if (sqlite3_prepare_v2(database, text, -1, &handle_, nullptr) != SQLITE_OK) handle_ = nullptr;
  }
  SqlStatement(const SqlStatement&) = delete;
  ~SqlStatement() { sqlite3_finalize(handle_); }

  bool is_valid() const { return handle_ != nullptr; }
  SqlStatement& bind(const std::string& text) {
    sqlite3_bind_text(handle_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  SqlStatement& bind(std::int64_t number) {
    sqlite3_bind_int64(handle_, ++bound_, number);
    return *this;
  }
  SqlStatement& bind(double number) {
    sqlite3_bind_double(handle_, ++bound_, number);
    return *this;
  }
  int step() { return sqlite3_step(handle_); }
  void reset() {
    sqlite3_reset(handle_);
    bound_ = 0;
  }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return data == nullptr
               ? ""
               : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(handle_, column); }
  double real(int column) const { return sqlite3_column_double(handle_, column); }

 private:
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

}  // namespace

struct TuningCache::Database {
  explicit Database(std::string file) : path(std::move(file)) {}
  Database(const Database&) = delete;
  ~Database() {
    lookup.reset();
    sqlite3_close(handle);
  }

  Error problem(const std::string& what) const {
    return Error("the tuning cache cannot be used", ErrorKind::Device)
        .at(path)
        .got(what, handle == nullptr ? "" : concat(": ", sqlite3_errmsg(handle)))
        .hint("`tenon tune --clear` removes it");
  }

  void run(const char* statements) const {
    if (sqlite3_exec(handle, statements, nullptr, nullptr, nullptr) != SQLITE_OK)
      throw problem("it refused a statement");
  }

  std::int64_t number(const char* query) const;
  void open(int flags);
  void make_tables();

  std::string path;
  sqlite3* handle = nullptr;
  // cached statement of `find`: a large graph runs it thousands of times
  std::unique_ptr<SqlStatement> lookup;
};

std::int64_t TuningCache::Database::number(const char* query) const {
  SqlStatement statement(handle, query);
  if (!statement.is_valid() || statement.step() != SQLITE_ROW) throw problem("it cannot be read");
  return statement.number(0);
}

void TuningCache::Database::open(int flags) {
  if (sqlite3_open_v2(path.c_str(), &handle, flags, nullptr) != SQLITE_OK)
    throw problem("it cannot be opened");
  sqlite3_busy_timeout(handle, kPatienceMs);
  // The file is untrusted: disables its functions and triggers.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  run("pragma foreign_keys = on");
}

void TuningCache::Database::make_tables() {
  // of two processes that create the file, one waits here and finds it complete
  run("begin immediate");
  if (number("pragma user_version") == 0 && number("select count(*) from sqlite_master") == 0) {
    run(kTables);
    run(concat("pragma application_id = ", kApplication).c_str());
    run(concat("pragma user_version = ", kCacheVersion).c_str());
  }
  run("commit");
}

TuningCache::TuningCache(const std::string& path, Mode mode)
    : database_(std::make_unique<Database>(path)) {
  const bool writes = mode == Mode::Write;
  if (writes) {
    std::error_code failed;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, failed);
    if (failed) throw database_->problem(concat("its folder cannot be made: ", failed.message()));
  }
  database_->open(writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  if (writes) {
    sqlite3_exec(database_->handle, "pragma journal_mode = wal", nullptr, nullptr,
                 nullptr);  // otherwise unchanged
    database_->make_tables();
  }
  if (database_->number("pragma application_id") != kApplication)
    throw database_->problem("it is something else");
  const std::int64_t version = database_->number("pragma user_version");
  if (version != kCacheVersion) {
    throw Error("the tuning cache is of another version of Tenon", ErrorKind::Device)
        .at(path)
        .expected("version ", kCacheVersion)
        .got("version ", version)
        .hint("`tenon tune --clear` removes it");
  }
  database_->number("select count(*) from kernels");
}

TuningCache::TuningCache() : database_(std::make_unique<Database>(":memory:")) {
  database_->open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database_->make_tables();
}
TuningCache::TuningCache(TuningCache&&) noexcept = default;
TuningCache::~TuningCache() = default;

namespace {

constexpr const char* kColumns =
    "select id, machine, generator, threads, work, name, symbol, flops from kernels ";

TunedKernel read_kernel(sqlite3* database, const SqlStatement& row) {
  TunedKernel kernel;
  kernel.place = {row.text(1), row.text(2), static_cast<int>(row.number(3))};
  kernel.work = row.text(4);
  kernel.name = row.text(5);
  kernel.symbol = row.text(6);
  kernel.flops = row.real(7);
  SqlStatement timings(database,
                       "select candidate, at, seconds, runs from timings where kernel = ? order by "
                       "at, seconds, candidate");
  if (timings.is_valid()) {
    timings.bind(row.number(0));
    while (timings.step() == SQLITE_ROW) {
      kernel.timings.push_back(
          {timings.text(0), timings.number(1), timings.real(2), timings.number(3)});
    }
  }
  SqlStatement ranges(database,
                      "select lo, hi, candidate from ranges where kernel = ? order by lo");
  if (ranges.is_valid()) {
    ranges.bind(row.number(0));
    while (ranges.step() == SQLITE_ROW)
      kernel.ranges.push_back({ranges.number(0), ranges.number(1), ranges.text(2)});
  }
  return kernel;
}

}  // namespace

std::optional<TunedKernel> TuningCache::find(const TuningPlace& place,
                                             const std::string& work) const {
  if (!database_->lookup) {
    database_->lookup = std::make_unique<SqlStatement>(
        database_->handle,
        concat(kColumns, "where machine = ? and generator = ? and threads = ? and work = ?")
            .c_str());
  }
  SqlStatement& query = *database_->lookup;
  if (!query.is_valid()) throw database_->problem("it cannot be read");
  query.reset();
  query.bind(place.machine).bind(place.generator).bind(std::int64_t{place.threads}).bind(work);
  const int status = query.step();
  std::optional<TunedKernel> kernel;
  if (status == SQLITE_ROW) kernel = read_kernel(database_->handle, query);
  query.reset();  // it would lock the file against writers
  if (status != SQLITE_ROW && status != SQLITE_DONE) throw database_->problem("it cannot be read");
  if (kernel && problem_of(*kernel)) return std::nullopt;  // treated as unknown
  return kernel;
}

std::vector<TunedKernel> TuningCache::all() const {
  SqlStatement query(database_->handle,
                     concat(kColumns, "order by machine, generator, threads, name, work").c_str());
  if (!query.is_valid()) throw database_->problem("it cannot be read");
  std::vector<TunedKernel> kernels;
  int status = query.step();
  for (; status == SQLITE_ROW; status = query.step())
    kernels.push_back(read_kernel(database_->handle, query));
  if (status != SQLITE_DONE) throw database_->problem("it cannot be read");
  return kernels;
}

void TuningCache::store(const TunedKernel& kernel) {
  sqlite3* handle = database_->handle;
  database_->run("begin immediate");
  const auto done = [&](SqlStatement& statement) {
    if (statement.is_valid() && statement.step() == SQLITE_DONE) return;
    const Error error = database_->problem("it cannot be written");
    sqlite3_exec(handle, "rollback", nullptr, nullptr, nullptr);
    throw error;
  };
  SqlStatement remove(
      handle,
      "delete from kernels where machine = ? and generator = ? and threads = ? and work = ?");
  remove.bind(kernel.place.machine)
      .bind(kernel.place.generator)
      .bind(std::int64_t{kernel.place.threads})
      .bind(kernel.work);
  done(remove);
  SqlStatement add(handle,
                   "insert into kernels (machine, generator, threads, work, name, symbol, flops) "
                   "values (?, ?, ?, ?, ?, ?, ?)");
  add.bind(kernel.place.machine)
      .bind(kernel.place.generator)
      .bind(std::int64_t{kernel.place.threads})
      .bind(kernel.work);
  add.bind(kernel.name).bind(kernel.symbol).bind(kernel.flops);
  done(add);
  const std::int64_t id = sqlite3_last_insert_rowid(handle);
  SqlStatement timing(
      handle, "insert into timings (kernel, at, candidate, seconds, runs) values (?, ?, ?, ?, ?)");
  for (const TunedKernel::Timing& entry : kernel.timings) {
    timing.reset();
    timing.bind(id).bind(entry.at).bind(entry.candidate).bind(entry.seconds).bind(entry.runs);
    done(timing);
  }
  SqlStatement range(handle, "insert into ranges (kernel, lo, hi, candidate) values (?, ?, ?, ?)");
  for (const TunedKernel::Range& entry : kernel.ranges) {
    range.reset();
    range.bind(id).bind(entry.lo).bind(entry.hi).bind(entry.candidate);
    done(range);
  }
  timing.reset();  // an unfinished statement keeps the transaction open
  range.reset();
  database_->run("commit");
}

std::optional<std::string> problem_of(const TunedKernel& kernel) {
  if (kernel.place.threads < 1) return "threads: below 1";
  if (kernel.timings.empty()) return "timings: none";
  if (kernel.ranges.empty()) return "ranges: none";
  for (std::size_t k = 0; k < kernel.timings.size(); ++k) {
    const TunedKernel::Timing& timing = kernel.timings[k];
    if (!std::isfinite(timing.seconds) || timing.seconds <= 0)
      return concat("timings/", k, "/seconds: not above 0");
  }
  for (std::size_t k = 0; k < kernel.ranges.size(); ++k) {
    const TunedKernel::Range& range = kernel.ranges[k];
    if (range.lo > range.hi) return concat("ranges/", k, ": ends before it begins");
    if (k > 0 && range.lo != kernel.ranges[k - 1].hi + 1)
      return concat("ranges/", k, ": does not follow the one before");
  }
  if (kernel.symbol.empty() && kernel.ranges.size() > 1)
    return "ranges: more than one, but no symbol decides";
  return std::nullopt;
}

std::optional<std::string> tuning_cache_path() {
  const std::optional<std::string> folder = user_cache_folder();
  if (!folder) return std::nullopt;
  return *folder + "/tuning.sqlite";
}

bool clear_tuning_cache(const std::string& path) {
  bool was_there = false;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code failed;
    const bool is_removed = std::filesystem::remove(path + suffix, failed);
    if (failed)
      throw Error("the tuning cache cannot be removed", ErrorKind::Device)
          .at(path + suffix)
          .got(failed.message());
    if (*suffix == '\0') was_there = is_removed;
  }
  return was_there;
}

}  // namespace tenon::tune

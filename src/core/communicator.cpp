#include "holdfast/core/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/json.h"
#include "rank_sum.h"

namespace holdfast {
namespace {

using Bytes = std::vector<std::uint8_t>;
using std::chrono::milliseconds;

constexpr int kJoinSeconds = 300;
constexpr milliseconds kFirstPause{2}, kLongestPause{100};
constexpr int kPatienceAtTheEnd = 30, kPatienceAfterFailure = 5;  // seconds
constexpr const char* kFailure = "failure";

Bytes to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "an unknown host";
}

milliseconds join_time() {
  const char* seconds = std::getenv("HOLDFAST_JOIN_SECONDS");
  const int asked = seconds == nullptr ? 0 : std::atoi(seconds);
  return std::chrono::seconds(asked > 0 ? asked : kJoinSeconds);
}

// torch writes lines of its own for every try to connect; what matters is said in one sentence.
class QuietTorchLog {
 public:
  QuietTorchLog() : level_(std::exchange(FLAGS_caffe2_log_level, 3)) {}
  ~QuietTorchLog() { FLAGS_caffe2_log_level = level_; }
  QuietTorchLog(const QuietTorchLog&) = delete;
  QuietTorchLog& operator=(const QuietTorchLog&) = delete;

 private:
  int level_;
};

c10::intrusive_ptr<c10d::Store> connect(const RankPlace& place) {
  const QuietTorchLog quiet;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = !place.is_hosted && place.rank == 0;
  options.numWorkers = static_cast<std::size_t>(place.size);
  options.waitWorkers = false;
  options.timeout = join_time();
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(place.host, options);
    return c10::make_intrusive<c10d::PrefixStore>("holdfast/" + place.group, store);
  } catch (const std::exception& error) {
    if (options.isServer)
      usage_error("rank 0 cannot listen on port {} of {} (MASTER_ADDR, MASTER_PORT): is it taken?", place.port, place.host);
    usage_error("rank {} of {} cannot reach rank 0 at {}:{} (MASTER_ADDR, MASTER_PORT)", place.rank, place.size, place.host,
                place.port);
  }
}

}  // namespace

struct Communicator::Store {
  c10::intrusive_ptr<c10d::Store> shared;
};

Communicator::Communicator(const RankPlace& place) : place_(place), store_(std::make_unique<Store>(Store{connect(place)})) {
  HOLDFAST_CHECK(place.rank >= 0 && place.rank < place.size);
  // Also finds out whether all of them come.
  add("joined", 1);
  const auto deadline = std::chrono::steady_clock::now() + join_time();
  wait_until([&] {
    const std::int64_t joined = add("joined", 0);
    if (joined < size() && std::chrono::steady_clock::now() > deadline)
      usage_error("only {} of the {} ranks have come to {}:{}", joined, size(), place_.host, place_.port);
    return joined >= size();
  });
}

Communicator::~Communicator() = default;

std::int64_t Communicator::take(const std::string& queue) {
  return add("queue/" + queue, 1) - 1;
}

std::int64_t Communicator::add(const std::string& counter, std::int64_t amount) {
  return store_->shared->add(counter, amount);
}

void Communicator::wait_for(const std::string& counter, std::int64_t value, const std::function<void(std::int64_t)>& seen) {
  wait_until([&] {
    const std::int64_t now = add(counter, 0);
    if (seen) seen(now);
    return now >= value;
  });
}

void Communicator::publish(const std::string& name, const std::string& text) {
  store_->shared->set("text/" + name, to_bytes(text));
}

std::string Communicator::read(const std::string& name) {
  wait_until([&] { return has("text/" + name); });
  const Bytes bytes = store_->shared->get("text/" + name);
  return {bytes.begin(), bytes.end()};
}

void Communicator::agree_on(const std::string& what, const std::string& fact, const std::string& advice) {
  publish(fmt::format("{}/{}", what, rank()), fact);
  for (int other = 0; other < size(); ++other) {
    const std::string theirs = read(fmt::format("{}/{}", what, other));
    const std::string first = other == 0 ? theirs : read(what + "/0");
    if (theirs != first)
      usage_error("ranks differ in their {}: {} on rank 0, {} on rank {}; {}", what, first, theirs, other, advice);
  }
}

bool Communicator::fail(const std::string& message, int exit_code) noexcept {
  try {
    const bool first = add("failures", 1) == 1;
    if (first)
      publish(kFailure, Json{{"rank", rank()}, {"host", host_name()}, {"message", message}, {"exit_code", exit_code}}.dump());
    add("left", 1);
    if (leads() && !place_.is_hosted) wait_for_leavers(kPatienceAfterFailure);
    return first;
  } catch (const std::exception&) {  // the store is gone, and with it those who would hear of it
    return true;
  }
}

int Communicator::leave(int exit_code) {
  if (!leads()) {
    const int code = std::stoi(read("exit"));
    add("left", 1);
    return code;
  }
  publish("exit", std::to_string(exit_code));
  add("left", 1);
  if (!place_.is_hosted) wait_for_leavers(kPatienceAtTheEnd);
  return exit_code;
}

// Rank 0 keeps the store: the others read its last words there. Those who do not come are not waited for.
void Communicator::wait_for_leavers(int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (add("left", 0) < size() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kFirstPause);
}

bool Communicator::has(const std::string& name) {
  return store_->shared->check({name});
}

std::unique_ptr<RankSum> Communicator::sums(const c10::Device& device) {
  return make_rank_sum(*this, store_->shared, device);
}

void Communicator::throw_if_another_failed() {
  if (!has(std::string("text/") + kFailure)) return;
  const Bytes bytes = store_->shared->get(std::string("text/") + kFailure);
  const Json failure = Json::parse(bytes);
  add("left", 1);
  throw OtherRankFailed(fmt::format("rank {} on {} failed: {}", failure.at("rank").get<int>(),
                                    failure.at("host").get<std::string>(), failure.at("message").get<std::string>()),
                        failure.at("exit_code"));
}

void Communicator::wait_until(const std::function<bool()>& holds) {
  for (milliseconds pause = kFirstPause; !holds(); pause = std::min(2 * pause, kLongestPause)) {
    throw_if_another_failed();
    throw_if_interrupted();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace holdfast

#include "holdfast/core/communicator.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"

#include "support/errors.h"

namespace holdfast {
namespace {

int free_port() {
  const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(handle, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(handle);
  return ntohs(address.sin_port);
}

// Runs `work` as every rank of a group, each on a thread; rank 0 keeps the store. A group that `fails` does not leave together.
template <class Work>
void as_ranks(int size, const Work& work, bool fails = false) {
  const int port = free_port();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator ranks({.rank = rank, .size = size, .host = "127.0.0.1", .port = port, .group = "test"});
      work(ranks);
      if (!fails) ranks.leave(0);
    });
  }
}

TEST(Communicator, EveryNumberOfAQueueIsGivenToOneRank) {
  constexpr std::int64_t kEach = 50;
  std::mutex mutex;
  std::vector<std::int64_t> taken;
  as_ranks(3, [&](Communicator& ranks) {
    for (std::int64_t i = 0; i < kEach; ++i) {
      const std::int64_t number = ranks.take("tiles");
      const std::lock_guard lock(mutex);
      taken.push_back(number);
    }
    EXPECT_EQ(ranks.take("another of rank " + std::to_string(ranks.rank())), 0);
  });
  std::vector<std::int64_t> expected(3 * kEach);
  std::iota(expected.begin(), expected.end(), 0);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, expected);
}

TEST(Communicator, WhatOneRankSaysAllRead) {
  as_ranks(3, [](Communicator& ranks) {
    if (ranks.rank() == 1) ranks.publish("word", std::string("a\0b", 3));
    EXPECT_EQ(ranks.read("word"), std::string("a\0b", 3));
  });
}

TEST(Communicator, EveryRankLeavesWithTheExitCodeOfRank0) {
  const int port = free_port();
  std::vector<int> codes(3, -1);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        Communicator ranks({.rank = rank, .size = 3, .host = "127.0.0.1", .port = port, .group = "exit"});
        codes[static_cast<std::size_t>(rank)] = ranks.leave(rank == 0 ? 1 : 0);
      });
    }
  }
  EXPECT_EQ(codes, (std::vector<int>{1, 1, 1}));
}

TEST(Communicator, AFailureEndsThoseWhoWait) {
  std::latch said(1);  // the store goes with rank 0
  const auto work = [&](Communicator& ranks) {
    if (ranks.rank() == 1) {
      EXPECT_TRUE(ranks.fail("the disk is full", 3));
      EXPECT_FALSE(ranks.fail("and more", 2));
      said.count_down();
      return;
    }
    try {
      ranks.read("never said");
      ADD_FAILURE() << "nobody has failed";
    } catch (const OtherRankFailed& failure) {
      EXPECT_EQ(failure.code(), 3);
      EXPECT_NE(std::string(failure.what()).find("the disk is full"), std::string::npos);
    }
    said.wait();
  };
  as_ranks(2, work, /*fails=*/true);
}

TEST(Communicator, RanksThatDifferAreNamed) {
  as_ranks(3, [](Communicator& ranks) {
    ranks.agree_on("torch", "2.13", "");
    EXPECT_ERROR(ranks.agree_on("instruction set", ranks.rank() == 2 ? "AVX512" : "AVX2", "set it"), kUsage,
                 "AVX2 on rank 0, AVX512 on rank 2; set it");
    ranks.add("done", 1);
    ranks.wait_for("done", 3);
  });
}

#ifdef HOLDFAST_GLOO
TEST(Communicator, TensorsAreAddedUpOverAllRanks) {
  as_ranks(3, [&](Communicator& ranks) {
    const std::unique_ptr<RankSum> sums = ranks.sums(at::kCPU);
    EXPECT_EQ(sums->size(), 3);
    EXPECT_EQ(sums->rank(), ranks.rank());
    for (int step = 0; step < 5; ++step) {
      at::Tensor numbers = at::full({1000}, ranks.rank() + step, at::kFloat);
      sums->add_up(numbers);
      EXPECT_TRUE(at::equal(numbers, at::full({1000}, 3 + 3 * step, at::kFloat)));
    }
  });
}
#endif

TEST(Cuda, ANumberOnAGpuIsAddedUpThere) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  as_ranks(1, [&](Communicator& ranks) {
    std::unique_ptr<RankSum> sums;
    try {
      sums = ranks.sums(at::Device(at::kCUDA, 0));
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    at::Tensor numbers = at::arange(5, at::TensorOptions().device(at::kCUDA).dtype(at::kFloat));
    sums->add_up(numbers);
    EXPECT_TRUE(at::equal(numbers.cpu(), at::arange(5, at::kFloat)));
  });
}

}  // namespace
}  // namespace holdfast

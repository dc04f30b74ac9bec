// SPDX-License-Identifier: Apache-2.0
#include "egress/buffered_stream.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

namespace coffer::egress {
namespace {

// A peer that sent some pieces and closed. As a socket does, it tells its end once.
class ClosedPeer : public net::Stream {
 public:
  ClosedPeer(std::vector<std::string> pieces, int& reads)
      : pieces_(std::move(pieces)), reads_(reads) {}

  net::Task<size_t> ReadSome(char* data, size_t size) override {
    const size_t number = static_cast<size_t>(reads_++);
    if (number >= pieces_.size()) {
      co_return 0;
    }
    co_return pieces_[number].copy(data, size);
  }
  net::Task<bool> Write(std::string_view, std::string_view) override { co_return true; }
  net::Task<void> FinishWriting() override { co_return; }
  bool PeerGone() override { return true; }
  void CancelRead() override {}
  void Close() override {}

 private:
  const std::vector<std::string> pieces_;
  int& reads_;
};

class BufferedStreamTest : public ::testing::Test {
 protected:
  // Whether each of `times` attempts to read more got something.
  std::vector<bool> Fill(std::vector<std::string> pieces, int times) {
    BufferedStream stream(std::make_unique<ClosedPeer>(std::move(pieces), reads_));
    std::vector<bool> filled;
    const auto run = [&]() -> net::Task<void> {
      for (int i = 0; i < times; ++i) {
        const bool more = co_await stream.Fill();
        filled.push_back(more);
      }
    };
    net::asio::co_spawn(net::ContextOf(*loop_).get_executor(), run(),
                        [this](std::exception_ptr) { loop_->Stop(); });
    loop_->Run();
    return filled;
  }

  const std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  int reads_ = 0;  // of the peer's stream
};

// Who reads a socket again after its end waits, and a connection keeps its place meanwhile.
TEST_F(BufferedStreamTest, AnEndIsReadOnce) {
  EXPECT_EQ(Fill({}, 3), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(reads_, 1);
}

// The control: as long as there is more, the stream is read each time.
TEST_F(BufferedStreamTest, WhatCameBeforeIsRead) {
  EXPECT_EQ(Fill({"one", "two"}, 4), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(reads_, 3);
}

TEST_F(BufferedStreamTest, TakesTheFirstBytes) {
  BufferedStream stream(std::make_unique<ClosedPeer>(std::vector<std::string>{}, reads_));
  stream.buffer() = "abcdef";
  EXPECT_EQ(stream.Take(2), "ab");
  EXPECT_EQ(stream.buffer(), "cdef");
  EXPECT_EQ(stream.Take(100), "cdef");
  EXPECT_EQ(stream.buffer(), "");
}

}  // namespace
}  // namespace coffer::egress

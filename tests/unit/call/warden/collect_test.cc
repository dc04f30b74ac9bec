// SPDX-License-Identifier: Apache-2.0
#include "call/warden/collect.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"

namespace coffer::call {
namespace {

void Say(const sys::Pipe& pipe, const std::string& text) {
  ASSERT_EQ(::write(pipe.write_end.get(), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

// Its channels are pipes that block: a read that poll has not announced would hang the test.
class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    for (sys::Pipe* const pipe : {&out_, &err_, &report_, &other_}) {
      *pipe = sys::MakePipe().value();
    }
    RunChannels channels{std::move(out_.read_end), std::move(err_.read_end),
                         std::move(report_.read_end)};
    collector_.emplace(std::move(channels), [this](Stream stream, std::string_view piece) {
      seen_ += (stream == Stream::kOut ? "out:" : "err:") + std::string(piece) + " ";
    });
  }

  std::vector<pollfd> Poll() {
    std::vector<pollfd> polled = {{other_.read_end.get(), POLLIN, 0}};
    collector_->AddTo(&polled);
    EXPECT_GE(::poll(polled.data(), polled.size(), 0), 0);
    return polled;
  }

  sys::Pipe out_, err_, report_, other_;
  std::optional<Collector> collector_;
  std::string seen_;
};

TEST_F(CollectorTest, ReadsWhatIsReadyAndNothingElse) {
  EXPECT_EQ(Poll().size(), 4U);
  collector_->ReadReady(Poll());
  EXPECT_EQ(seen_, "");
  Say(err_, "warning");
  Say(other_, "not a channel's");
  collector_->ReadReady(Poll());
  EXPECT_EQ(seen_, "err:warning ");
  Say(out_, "one");
  Say(err_, "two");
  collector_->ReadReady(Poll());
  EXPECT_EQ(seen_, "err:warning out:one err:two ");
  EXPECT_FALSE(collector_->done());
}

TEST_F(CollectorTest, AChannelThatEndedIsNotPolledAgain) {
  Say(out_, "last");
  out_.write_end.Reset();
  collector_->ReadReady(Poll());
  EXPECT_EQ(Poll().size(), 4U) << "its end comes after its last bytes";
  collector_->ReadReady(Poll());
  EXPECT_EQ(Poll().size(), 3U);
  // What poll said before does not lead to a read of a channel that has ended.
  const std::vector<pollfd> old = Poll();
  err_.write_end.Reset();
  report_.write_end.Reset();
  collector_->ReadReady(old);
  EXPECT_FALSE(collector_->done());
  collector_->ReadReady(Poll());
  EXPECT_TRUE(collector_->done());
  EXPECT_EQ(Poll().size(), 1U);
  const Collected collected = collector_->Take();
  EXPECT_EQ(collected.stdout_text, "last");
  EXPECT_FALSE(collected.report.has_value());
}

}  // namespace
}  // namespace coffer::call

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;

namespace gridbuf::emulated {
namespace {

// Work that writes its letter to a log.
class Log {
 public:
  Work write(char letter) {
    return [this, letter] {
      text_ += letter;
      return absl::OkStatus();
    };
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Fixture : ::testing::Test {
  LateStreams streams;
  Log log;
  StreamHandle a = streams.create(StreamKind::kNonBlocking);
  StreamHandle b = streams.create(StreamKind::kNonBlocking);
  StreamHandle blocking = streams.create(StreamKind::kBlocking);

  void put(StreamHandle stream, char letter) {
    ASSERT_TRUE(streams.enqueue(stream, log.write(letter)).ok());
  }
};
using LateStreamsTest = Fixture;

TEST_F(LateStreamsTest, RunsNothingBeforeAWait) {
  put(a, '1');
  put(a, '2');
  EXPECT_EQ(log.text(), "");
  EXPECT_TRUE(streams.synchronize(a).ok());
  EXPECT_EQ(log.text(), "12");
}

// The consumer runs on a second stream. Without an order it does not see the pending work of the
// producer's stream.
TEST_F(LateStreamsTest, RunsOnlyWhatIsWaitedFor) {
  put(a, 'p');
  put(b, 'c');
  EXPECT_TRUE(streams.synchronize(b).ok());
  EXPECT_EQ(log.text(), "c");  // the producer's work is still pending
}

TEST_F(LateStreamsTest, RunsTheProducerBeforeAConsumerOrderedAfterIt) {
  put(a, 'p');
  EXPECT_TRUE(streams.order_after(/*producer=*/a, /*consumer=*/b).ok());
  put(b, 'c');
  EXPECT_TRUE(streams.synchronize(b).ok());
  EXPECT_EQ(log.text(), "pc");
}

TEST_F(LateStreamsTest, AnEventCoversOnlyWhatWasPendingWhenItWasRecorded) {
  put(a, 'p');
  ASSERT_TRUE(streams.order_after(a, b).ok());
  put(a, 'q');
  put(b, 'c');
  EXPECT_TRUE(streams.synchronize(b).ok());
  EXPECT_EQ(log.text(), "pc");
}

TEST_F(LateStreamsTest, WorkThatRunsOutOfMemoryIsAnErrorOfTheNextWait) {
  ASSERT_TRUE(streams.enqueue(a, []() -> absl::Status { throw std::bad_alloc(); }).ok());
  put(a, '1');
  EXPECT_EQ(error_class_of(streams.synchronize(a)), ErrorClass::kMemory);
  EXPECT_EQ(log.text(), "1");
  EXPECT_TRUE(streams.synchronize(a).ok());
}

TEST_F(LateStreamsTest, FollowsChainsOfEvents) {
  std::vector<StreamHandle> chain{a};
  put(a, '0');
  for (char letter = '1'; letter <= '9'; ++letter) {
    const StreamHandle next = streams.create(StreamKind::kNonBlocking);
    ASSERT_TRUE(streams.order_after(chain.back(), next).ok());
    put(next, letter);
    chain.push_back(next);
  }
  EXPECT_TRUE(streams.synchronize(chain.back()).ok());
  EXPECT_EQ(log.text(), "0123456789");
}

TEST_F(LateStreamsTest, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  put(blocking, '1');
  put(kPerThreadDefaultStream, '2');
  put(a, 'x');  // non-blocking: not ordered with it
  put(kLegacyDefaultStream, '3');
  put(blocking, '4');
  EXPECT_TRUE(streams.synchronize(blocking).ok());
  EXPECT_EQ(log.text(), "1234");
}

TEST_F(LateStreamsTest, WaitingForTheLegacyStreamWaitsForBlockingStreams) {
  put(blocking, '1');
  put(a, 'x');
  EXPECT_TRUE(streams.synchronize(kLegacyDefaultStream).ok());
  EXPECT_EQ(log.text(), "1");
}

TEST_F(LateStreamsTest, AnEventOfTheLegacyStreamCoversBlockingStreams) {
  put(blocking, '1');
  ASSERT_TRUE(streams.order_after(kLegacyDefaultStream, a).ok());
  put(a, '2');
  EXPECT_TRUE(streams.synchronize(a).ok());
  EXPECT_EQ(log.text(), "12");
}

TEST_F(LateStreamsTest, EachThreadHasItsOwnDefaultStream) {
  std::thread([this] { put(kPerThreadDefaultStream, 't'); }).join();
  put(kPerThreadDefaultStream, 'm');
  EXPECT_TRUE(streams.synchronize(kPerThreadDefaultStream).ok());
  EXPECT_EQ(log.text(), "m");
  EXPECT_TRUE(streams.synchronize_device().ok());  // the thread has ended, its work is pending
  EXPECT_EQ(log.text(), "mt");
}

TEST_F(LateStreamsTest, ADestroyedStreamsWorkIsStillDone) {
  put(a, '1');
  ASSERT_TRUE(streams.order_after(a, b).ok());
  ASSERT_TRUE(streams.destroy(a).ok());
  EXPECT_EQ(error_class_of(streams.check(a)), ErrorClass::kValue);
  put(b, '2');
  EXPECT_TRUE(streams.synchronize(b).ok());
  EXPECT_EQ(log.text(), "12");
}

TEST_F(LateStreamsTest, RefusesHandlesThatAreNoLiveStream) {
  ASSERT_TRUE(streams.destroy(a).ok());
  for (const StreamHandle stream : {StreamHandle{0}, StreamHandle{3}, a, ~StreamHandle{0}}) {
    EXPECT_EQ(error_class_of(streams.check(stream)), ErrorClass::kValue) << stream;
    EXPECT_EQ(error_class_of(streams.enqueue(stream, nullptr)), ErrorClass::kValue) << stream;
    EXPECT_EQ(error_class_of(streams.synchronize(stream)), ErrorClass::kValue) << stream;
    EXPECT_EQ(error_class_of(streams.destroy(stream)), ErrorClass::kValue) << stream;
    EXPECT_EQ(error_class_of(streams.order_after(stream, b)), ErrorClass::kValue) << stream;
    EXPECT_EQ(error_class_of(streams.order_after(b, stream)), ErrorClass::kValue) << stream;
    EXPECT_FALSE(streams.is_idle(stream).ok()) << stream;
  }
  EXPECT_EQ(error_class_of(streams.destroy(kLegacyDefaultStream)), ErrorClass::kValue);
  EXPECT_TRUE(streams.check(kLegacyDefaultStream).ok());
  EXPECT_TRUE(streams.check(kPerThreadDefaultStream).ok());
  EXPECT_NE(streams.create(StreamKind::kBlocking), a);  // handles are unique
}

TEST_F(LateStreamsTest, PollingEnds) {
  EXPECT_TRUE(*streams.is_idle(a));
  put(a, '1');
  EXPECT_FALSE(*streams.is_idle(a));
  EXPECT_EQ(log.text(), "");  // one query does not wait
  int questions = 1;
  while (!*streams.is_idle(a)) ++questions;
  EXPECT_LE(questions, LateStreams::kPatience);
  EXPECT_EQ(log.text(), "1");
}

TEST_F(LateStreamsTest, PollingTheLegacyStreamEndsWithBlockingWorkDone) {
  put(blocking, '1');
  EXPECT_FALSE(*streams.is_idle(kLegacyDefaultStream));
  while (!*streams.is_idle(kLegacyDefaultStream)) {
  }
  EXPECT_EQ(log.text(), "1");
}

TEST_F(LateStreamsTest, ReportsTheFirstFailureOnceAndGoesOn) {
  const auto fail = [](const char* text) {
    return [text] { return make_error(ErrorClass::kInternal, std::string(text)); };
  };
  ASSERT_TRUE(streams.enqueue(a, fail("first")).ok());
  ASSERT_TRUE(streams.enqueue(a, fail("second")).ok());
  put(a, '1');
  const absl::Status status = streams.synchronize(a);
  EXPECT_EQ(status.message(), "first");
  EXPECT_EQ(log.text(), "1");
  EXPECT_TRUE(streams.synchronize(a).ok());
}

TEST_F(LateStreamsTest, QueuesStayBounded) {
  std::int64_t ran = 0;
  for (std::size_t i = 0; i < 3 * LateStreams::kMostPending; ++i) {
    ASSERT_TRUE(streams
                    .enqueue(a,
                             [&ran] {
                               ++ran;
                               return absl::OkStatus();
                             })
                    .ok());
  }
  EXPECT_GT(ran, 0);
  EXPECT_LE(streams.pending_operations(), std::int64_t{LateStreams::kMostPending});
}

TEST_F(LateStreamsTest, WorkKnowsThatItIsWork) {
  bool inside = false;
  ASSERT_TRUE(streams
                  .enqueue(a,
                           [&inside] {
                             inside = inside_work();
                             return absl::OkStatus();
                           })
                  .ok());
  EXPECT_TRUE(streams.synchronize(a).ok());
  EXPECT_TRUE(inside);
  EXPECT_FALSE(inside_work());
}

// Producers on many threads, all waited for through one chain of events; with ThreadSanitizer this
// shows that a waiting thread sees the writes of the work.
TEST_F(LateStreamsTest, ServesThreadsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<std::int64_t> sums(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &sum = sums[static_cast<std::size_t>(t)]] {
      const StreamHandle mine = streams.create(StreamKind::kBlocking);
      for (int i = 0; i < kRounds; ++i) {
        const auto add = [&sum] {
          ++sum;
          return absl::OkStatus();
        };
        EXPECT_TRUE(streams.enqueue(mine, add).ok());
        EXPECT_TRUE(streams.order_after(mine, kLegacyDefaultStream).ok());
        if (i % 7 == 0) EXPECT_TRUE(streams.synchronize(kLegacyDefaultStream).ok());
      }
      EXPECT_TRUE(streams.destroy(mine).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(streams.synchronize(kLegacyDefaultStream).ok());
  EXPECT_EQ(sums, std::vector<std::int64_t>(kThreads, kRounds));
  EXPECT_EQ(streams.pending_operations(), 0);
}

}  // namespace
}  // namespace gridbuf::emulated

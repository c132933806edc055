// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "datapath/tap/capture_datapath.h"
#include "datapath/tap/capture_file.h"
#include "support/cancelled.h"
#include "support/temporary_folder.h"
#include "unit/datapath/tap/scripted_link.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::datapath::tap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Captured {
  std::uint32_t interface = 0;
  std::uint32_t direction = 0;
  ByteVector frame;
};

struct Capture {
  int sections = 0;
  int interfaces = 0;
  std::vector<Captured> packets;
};

template <typename Value>
Value value_at(const ByteVector& bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

ByteVector bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ByteVector bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Every block says its length at both ends, and nothing stands behind the last.
Capture read_capture(const std::string& path) {
  Capture capture;
  const ByteVector file = bytes_of(path);
  for (std::size_t at = 0, length = 0; at < file.size(); at += length) {
    length = value_at<std::uint32_t>(file, at + 4);
    if (length < 12 || length > file.size() - at ||
        value_at<std::uint32_t>(file, at + length - 4) != length) {
      ADD_FAILURE() << path << ": broken block at " << at;
      break;
    }
    const auto type = value_at<std::uint32_t>(file, at);
    capture.sections += type == 0x0a0d0d0a ? 1 : 0;
    capture.interfaces += type == 1 ? 1 : 0;
    if (type != 6) continue;
    const auto bytes = value_at<std::uint32_t>(file, at + 20);
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at) + 28;
    capture.packets.push_back({value_at<std::uint32_t>(file, at + 8),
                               value_at<std::uint32_t>(file, at + length - 12),
                               {begin, begin + bytes}});
  }
  return capture;
}

class CaptureFiles : public testing::Test {
 protected:
  std::shared_ptr<CaptureFile> open(const std::string& path, const std::string& device = "uroce0") {
    auto file = CaptureFile::open(path, device);
    EXPECT_TRUE(file) << file.error().message;
    return file ? *file : nullptr;
  }
  [[nodiscard]] std::string in_folder(const std::string& name) const {
    return folder_.path() + "/" + name;
  }

  test::TemporaryFolder folder_;
  const std::string process_ = std::to_string(getpid());
};

TEST_F(CaptureFiles, WhoComesToABusyFileTakesOneOfItsOwn) {
  const std::string path = in_folder("out.v1.pcapng");
  const auto first = open(path), second = open(path), third = open(path, "uroce1");
  EXPECT_EQ(first->path(), path);
  EXPECT_FALSE(first->is_second_choice());
  EXPECT_TRUE(second->is_second_choice());
  EXPECT_EQ(second->path(), in_folder("out.v1." + process_ + ".pcapng"));
  EXPECT_EQ(third->path(), in_folder("out.v1." + process_ + ".uroce1.pcapng"));
  const auto without_extension = open(in_folder("out")), another = open(in_folder("out"));
  EXPECT_EQ(another->path(), in_folder("out." + process_));
}

TEST_F(CaptureFiles, ThePatternNamesTheProcess) {
  const auto file = open(in_folder("%p-%p.pcapng"));
  EXPECT_EQ(file->path(), in_folder(process_ + "-" + process_ + ".pcapng"));
  EXPECT_FALSE(file->is_second_choice());
  EXPECT_EQ(prepare_capture(in_folder("%p.pcapng")), "");
  EXPECT_FALSE(std::filesystem::exists(in_folder("%p.pcapng")));
}

TEST_F(CaptureFiles, WhoComesLaterAppendsASection) {
  const std::string path = in_folder("out.pcapng");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(open(path)->add_interface("uroce0-shm"), 0u);
  const Capture capture = read_capture(path);
  EXPECT_EQ(capture.sections, 2);
  EXPECT_EQ(capture.interfaces, 2);
}

TEST_F(CaptureFiles, AreEmptiedBeforeAProgramStartsUnlessInUse) {
  const std::string path = in_folder("out.pcapng");
  open(path);
  EXPECT_EQ(prepare_capture(path), "");
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  const auto user = open(path);
  user->flush();
  EXPECT_EQ(prepare_capture(path), "");
  EXPECT_GT(std::filesystem::file_size(path), 0u);
}

// The shard's lock would stay taken (man 7 pthreads).
TEST_F(CaptureFiles, AreWrittenByThreadsThatAreToBeCancelled) {
  const auto file = open(in_folder("out.pcapng"));
  const auto write = [&] { file->flush(); };
  EXPECT_TRUE(test::is_no_cancellation_point(write));
  EXPECT_GT(std::filesystem::file_size(file->path()), 0u);
}

TEST_F(CaptureFiles, AreForTheirOwnerOnly) {
  open(in_folder("out.pcapng"));
  struct stat status {};
  ASSERT_EQ(stat(in_folder("out.pcapng").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CaptureFiles, ThatCannotBeWrittenAreOneClearLine) {
  const std::string path = in_folder("nowhere/out.pcapng");
  EXPECT_EQ(prepare_capture(path),
            path + ": cannot be written, so nothing can be captured: No such file or directory");
  const auto file = CaptureFile::open(path, "uroce0");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, prepare_capture(path));
  const std::string pipe = in_folder("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(prepare_capture(pipe), HasSubstr("a capture goes to a file"));
  EXPECT_THAT(prepare_capture(folder_.path()), HasSubstr("Is a directory"));
}

TEST_F(CaptureFiles, AFullDiskEndsTheCaptureAndNothingElse) {
  const auto file = open("/dev/full");
  testing::internal::CaptureStderr();
  file->flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "uroce: error: /dev/full: No space left on device; the capture ends here, the program "
            "goes on\n");
  EXPECT_EQ(file->reserve(100), nullptr);
  file->flush();
}

std::byte* put_packet(CaptureFile& file, std::size_t bytes) {
  std::byte* const block = file.reserve(capture::pcapng::packet_block_bytes({}, bytes));
  if (block == nullptr) return nullptr;
  capture::pcapng::put_packet_tail(block, {}, bytes);
  return std::fill_n(capture::pcapng::put_packet_head(block, {}, bytes), bytes, std::byte{0x55});
}

// A limit stands for the disk: the last write is cut short.
TEST_F(CaptureFiles, EndWithAWholePacketHoweverTheyEnd) {
  const std::string path = in_folder("out.pcapng");
  const auto file = open(path);
  file->add_interface("uroce0-shm");
  for (int i = 0; i < 10; ++i) put_packet(*file, 1000);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{5'500, before.rlim_max};
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  testing::internal::CaptureStderr();
  file->flush();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("File too large"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, former);
  EXPECT_EQ(read_capture(path).packets.size(), 5u);
}

TEST_F(CaptureFiles, TakeMoreThanTheirBufferHolds) {
  const std::string path = in_folder("out.pcapng");
  {
    const auto file = open(path);
    file->add_interface("uroce0-shm");
    for (int i = 0; i < 1000; ++i) ASSERT_NE(put_packet(*file, 4001), nullptr);
    EXPECT_EQ(file->reserve(CaptureFile::kReserveMax + 1), nullptr);
  }
  EXPECT_EQ(read_capture(path).packets.size(), 1000u);
}

TEST_F(CaptureFiles, AForkedChildWritesNothing) {
  const std::string path = in_folder("out.pcapng");
  {
    const auto file = open(path);
    file->abandon_in_child();
    EXPECT_EQ(file->reserve(100), nullptr);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

// ---- what is in it ----

class Captures : public CaptureFiles {
 protected:
  void SetUp() override {
    auto link = std::make_unique<ScriptedLink>();
    link_ = link.get();
    capturing_ = std::make_unique<CaptureDatapath>(std::move(link), open(path_), "uroce0-shm",
                                                   [] { return std::uint64_t{1'000}; });
    ASSERT_EQ(capturing_->open_path(path, {0x202}), 0);
  }

  std::size_t receive() {
    std::vector<RxPacket> packets(32);
    return capturing_->rx_burst(packets);
  }
  // Each with its addresses and its ICRC right.
  std::vector<wire::NetworkView> dissect() {
    capturing_->on_turn({});
    capture_ = read_capture(path_);
    std::vector<wire::NetworkView> views;
    for (const Captured& packet : capture_.packets) {
      wire::NetworkView view;
      EXPECT_EQ(wire::parse_network(packet.frame, view), wire::NetworkDrop::kNone);
      const ConstBytes covered = view.udp_payload.first(view.udp_payload.size() - 4);
      EXPECT_EQ(
          wire::icrc_of(wire::crc32, wire::icrc_start(wire::crc32, view.ip_header, view.udp_header),
                        covered),
          wire::load_icrc(view.udp_payload));
      views.push_back(view);
    }
    return views;
  }

  const std::string path_ = in_folder("out.pcapng");
  ScriptedLink* link_ = nullptr;
  std::unique_ptr<CaptureDatapath> capturing_;
  Capture capture_;
  Path path{.source = wire::gid_of_ipv4(0x0a00'0001),
            .destination = wire::gid_of_ipv4(0x0a00'0002),
            .udp_source_port = 0xc123,
            .own_qpn = {0x101}};
};

TEST_F(Captures, ShowAnArrivedRunAsPacketsFromThePeer) {
  link_->arrive({write_run(7, 2'500, 3)});
  EXPECT_EQ(receive(), 1u) << "the run itself goes on whole";
  const auto views = dissect();
  ASSERT_EQ(views.size(), 3u);
  const std::vector<std::size_t> sizes = {28 + 1024 + 4, 12 + 1024 + 4, 12 + 452 + 4};
  const std::vector<wire::Opcode> opcodes = {
      wire::Opcode::kRcWriteFirst, wire::Opcode::kRcWriteMiddle, wire::Opcode::kRcWriteLast};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(views[i].source, path.destination);
    EXPECT_EQ(views[i].destination, path.source);
    EXPECT_EQ(views[i].udp_source_port, 0xc123);
    EXPECT_EQ(views[i].udp_payload.size(), sizes[i]);
    const wire::BthWords bth = wire::load_bth(views[i].udp_payload.data());
    EXPECT_EQ(bth.opcode(), opcodes[i]);
    EXPECT_EQ(bth.psn(), Psn(7 + static_cast<std::uint32_t>(i)));
    EXPECT_EQ(capture_.packets[i].direction, 1u);
  }
}

TEST_F(Captures, ShowWhatIsSentButNotWhatIsRefused) {
  std::vector<std::byte> payload(2'501, std::byte{7});
  const ConstBytes gather(payload);
  TxFrame frame;
  frame.path = &path;
  frame.packet_count = 3;
  frame.segment_bytes = 1024;
  frame.payload_bytes = 2'501;
  frame.gather = &gather;
  frame.gather_count = 1;
  wire::build(frame, wire::Bth{.opcode = wire::Opcode::kRcSendOnly, .destination = {0x202}});
  link_->refuses = true;
  EXPECT_EQ(capturing_->tx_burst({&frame, 1}), 1u);
  EXPECT_THAT(dissect(), IsEmpty());
  link_->refuses = false;
  EXPECT_EQ(capturing_->tx_burst({&frame, 1}), 0u);
  const auto views = dissect();
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].source, path.source);
  EXPECT_EQ(views[2].udp_payload.size(), 12u + 456u + 4u) << "padded";
  EXPECT_EQ(capture_.packets[2].direction, 2u);
}

TEST_F(Captures, HaveNoAddressWhereNobodyKnowsIt) {
  link_->arrive({write_run(7, 8, 1, {0x999})});
  EXPECT_EQ(receive(), 1u);
  const auto views = dissect();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].source, wire::gid_of_ipv4(0)) << "nobody has opened such a path";
}

TEST_F(Captures, ShowIpv6) {
  path.source.bytes[0] = path.destination.bytes[0] = 0xfd;
  ASSERT_EQ(capturing_->open_path(path, {0x202}), 0);
  link_->arrive({write_run(7, 300)});
  EXPECT_EQ(receive(), 1u);
  const auto views = dissect();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].source, path.destination);
}

TEST_F(Captures, ShowWholeFramesAsTheyAre) {
  const Arrival arrived{.headers = ByteVector(70, std::byte{3}), .payload = {}, .is_frame = true};
  link_->arrive({arrived});
  EXPECT_EQ(receive(), 1u);
  const ByteVector head(20, std::byte{4});
  const ByteVector tail(50, std::byte{5});
  const std::array<ConstBytes, 2> pieces{head, tail};
  TxFrame frame;
  frame.payload_bytes = 70;
  frame.gather = pieces.data();
  frame.gather_count = 2;
  EXPECT_EQ(capturing_->tx_burst({&frame, 1}), 0u);
  capturing_->on_turn({});
  const auto packets = read_capture(path_).packets;
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].frame, arrived.headers);
  EXPECT_EQ(packets[0].direction, 1u);
  ByteVector sent = head;
  sent.insert(sent.end(), tail.begin(), tail.end());
  EXPECT_EQ(packets[1].frame, sent);
  EXPECT_EQ(packets[1].direction, 2u);
}

TEST_F(Captures, ShowAlsoWhatIsMalformed) {
  Arrival broken = write_run(7, 0);
  broken.headers.resize(8);
  link_->arrive({broken});
  EXPECT_EQ(receive(), 1u);
  capturing_->on_turn({});
  ASSERT_EQ(read_capture(path_).packets.size(), 1u);
}

}  // namespace
}  // namespace uroce::datapath::tap

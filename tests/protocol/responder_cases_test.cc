// SPDX-License-Identifier: BSD-2-Clause
// The responder's faults that other stacks have had (docs/CONFORMANCE.md, P20 to P49, P56 to P75):
// duplicates, errors and who hears of them, headers, keys.
#include <algorithm>

#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Kind;
using wire::NakCode;
using wire::Opcode;

constexpr std::uint64_t kTop = 0xffff'ffff'ffff'fc00;

class ResponderCases : public RcTest {
 protected:
  void expect_nak(std::uint32_t psn, NakCode code) {
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, psn}));
    EXPECT_EQ(packets.back().view().aeth.syndrome, wire::Syndrome::nak(code));
    EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  }
  void add_region(std::uint32_t key, memory::Access access, PdId pd) {
    memory::MemoryRegion region = *endpoint.hca.regions().find(Endpoint::kKey);
    region.key = key;
    region.access = access;
    region.pd = pd;
    ASSERT_EQ(endpoint.hca.regions().insert(region), memory::InsertOutcome::kInserted);
  }
  void request(Opcode opcode, std::uint64_t address, std::uint32_t key, std::uint32_t bytes) {
    const wire::OpcodeInfo& info = wire::opcode_info(opcode);
    const wire::Reth target{address, {key}, bytes};
    const wire::Bth header = bth(opcode, kFirstPsn, true);
    if (info.atomic_eth) {
      endpoint.receive(make_packet(header, 0, wire::AtomicEth{address, {key}, 1, 0}));
    } else if (info.immediate) {
      endpoint.receive(make_packet(header, bytes, target, wire::Immediate{7}));
    } else {
      endpoint.receive(make_packet(header, info.payload ? bytes : 0, target));
    }
  }
};

// Everything that names remote memory, in one packet.
constexpr Opcode kRemote[] = {Opcode::kRcWriteOnly, Opcode::kRcWriteOnlyImmediate,
                              Opcode::kRcReadRequest, Opcode::kRcCompareSwap, Opcode::kRcFetchAdd};

class RemoteAccess : public ResponderCases, public ::testing::WithParamInterface<Opcode> {
 protected:
  // P24, P25: refused at once, with the right news for this end's application.
  void expect_refused() {
    expect_nak(kFirstPsn, NakCode::kRemoteAccess);
    if (wire::opcode_info(GetParam()).immediate) {
      EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalAccessError);
      EXPECT_FALSE(endpoint.event());
    } else {
      const auto event = endpoint.event();
      ASSERT_TRUE(event);
      EXPECT_EQ(event->type, EventType::kQpAccessError);
      EXPECT_EQ(event->qp, &qp.qp);
      for (const Cqe& entry : endpoint.poll_all()) EXPECT_EQ(entry.status, WcStatus::kFlushed);
    }
  }
};

TEST_P(RemoteAccess, NeedsAKeyThatIsThere) {
  endpoint.post_receive(qp, 1, {});
  request(GetParam(), endpoint.address(0), 0xbad'0bad, 8);
  expect_refused();
}

// P56.
TEST_P(RemoteAccess, DoesNotWrapAround) {
  endpoint.post_receive(qp, 1, {});
  request(GetParam(), kTop, Endpoint::kKey, 0x400);
  expect_refused();
}

// P58.
TEST_P(RemoteAccess, StaysInTheProtectionDomain) {
  endpoint.post_receive(qp, 1, {});
  add_region(0x777'0100, qp.options.access, PdId{2});
  request(GetParam(), endpoint.address(0), 0x777'0100, 8);
  expect_refused();
}

TEST_P(RemoteAccess, NeedsTheRegionsRight) {
  endpoint.post_receive(qp, 1, {});
  add_region(0x777'0100, memory::Access::kLocalWrite, Endpoint::kPd);
  request(GetParam(), endpoint.address(0), 0x777'0100, 8);
  expect_refused();
}

// P25: with nothing posted, a WRITE with immediate waits for a receive before its key is looked at.
TEST_F(ResponderCases, AWriteWithImmediateTakesItsReceiveBeforeItsKeyIsChecked) {
  request(Opcode::kRcWriteOnlyImmediate, endpoint.address(0), 0xbad'0bad, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
  EXPECT_EQ(packets.back().view().aeth.syndrome.kind(), wire::SyndromeKind::kRnrNak);
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

INSTANTIATE_TEST_SUITE_P(Operations, RemoteAccess, ::testing::ValuesIn(kRemote));

// P32: every offset of a word, both atomics.
TEST(ResponderCasesOfTheirOwn, AnAtomicIsAlignedOrRefused) {
  for (const Opcode opcode : {Opcode::kRcCompareSwap, Opcode::kRcFetchAdd}) {
    for (std::size_t offset = 0; offset <= 8; ++offset) {
      Pair pair(wire_link(), {}, 4096);
      const bool is_swap = opcode == Opcode::kRcCompareSwap;
      pair.a.post_send(
          pair.qp_a, {.operation = is_swap ? SendOperation::kCompareSwap : SendOperation::kFetchAdd,
                      .sges = {pair.a.sge(0, 8)},
                      .remote_address = pair.b.address(64 + offset),
                      .rkey = {Endpoint::kKey},
                      .compare_add = is_swap ? 0U : 1U,
                      .swap = 1});
      ASSERT_TRUE(pair.run());
      const bool is_aligned = offset % 8 == 0;
      EXPECT_EQ(pair.a.poll()->status,
                is_aligned ? WcStatus::kSuccess : WcStatus::kRemoteInvalidRequest);
      EXPECT_EQ(std::ranges::count(pair.b.buffer, std::byte{1}), is_aligned ? 1 : 0);
    }
  }
}

// P21: the answer lost twice, a hundred times.
TEST(ResponderCasesOfTheirOwn, AnAtomicWhoseAnswerIsLostTakesEffectOnce) {
  Pair pair(wire_link(), {}, 4096);
  for (std::uint64_t round = 0; round < 100; ++round) {
    pair.a.post_send(pair.qp_a, {.operation = SendOperation::kFetchAdd,
                                 .sges = {pair.a.sge(0, 8)},
                                 .remote_address = pair.b.address(64),
                                 .rkey = {Endpoint::kKey},
                                 .compare_add = 1});
    unsigned answers = 0;
    ASSERT_TRUE(pair.run([&](unsigned, const Packet& packet) {
      return packet.view().opcode->kind == Kind::kAtomicAcknowledge && ++answers <= 2 ? 0 : 1;
    }));
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
    std::uint64_t original = 0;
    std::uint64_t counter = 0;
    std::memcpy(&original, pair.a.buffer.data(), 8);
    std::memcpy(&counter, pair.b.buffer.data() + 64, 8);
    EXPECT_EQ(original, round);
    EXPECT_EQ(counter, round + 1);
  }
}

// P33: for every way to be too short, both ends.
TEST(ResponderCasesOfTheirOwn, AReceiveTooShortFailsBothEnds) {
  for (const std::uint32_t room : {0U, 1U, 1023U, 1024U, 4095U}) {
    Pair pair(wire_link(), {}, 1 << 16);
    pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, room)});
    pair.a.post_send(pair.qp_a, {.sges = {pair.a.sge(0, 4096)}});
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.b.poll()->status, WcStatus::kLocalLengthError);
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kRemoteInvalidRequest);
    EXPECT_EQ(pair.a.hca.query_qp(pair.qp_a.qp).state, QpState::kErr);
    EXPECT_EQ(pair.b.hca.query_qp(pair.qp_b.qp).state, QpState::kErr);
  }
}

// P29: an error in a WRITE's length has no receive to carry it, and so is an event.
TEST_F(ResponderCases, AnInvalidRequestWithoutAReceiveIsAnEvent) {
  request(Opcode::kRcWriteOnly, endpoint.address(0), Endpoint::kKey, 1028);
  expect_nak(kFirstPsn, NakCode::kInvalidRequest);
  EXPECT_EQ(endpoint.event()->type, EventType::kQpRequestError);
}

// P40: nobody is harmed, whatever the opcode, the number and the length.
TEST(ResponderCasesOfTheirOwn, EveryOpcodeToEveryKindOfNumberIsHarmless) {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    Pair pair(wire_link(), {}, 4096);
    for (const std::uint32_t qpn : {0x101U, 0U, 1U, 0xff'ffffU, 0x102U, 0x7777U}) {
      for (const std::size_t bytes : {0U, 4U, 11U, 12U, 16U, 28U, 40U, 44U, 256U, 1040U}) {
        Packet packet;
        packet.bytes.assign(bytes, std::byte{0});
        if (bytes >= 12) {
          const wire::BthWords words = wire::to_words(
              {.opcode = static_cast<Opcode>(opcode), .destination = {qpn}, .psn = Psn(100)});
          wire::store_bth(packet.bytes.data(), words);
        }
        pair.a.receive(packet);
        EXPECT_LE(pair.a.transmit().size(), 1U);
      }
    }
    EXPECT_EQ(pair.a.buffer, std::vector<std::byte>(4096));
  }
}

// P42, P43: of every packet of an exchange of everything.
TEST(ResponderCasesOfTheirOwn, HeadersAreAsNicsHaveThem) {
  Pair pair(wire_link(), {}, 1 << 16);
  const RKey window{0x3333'3300};
  pair.b.add_window(window, memory::KeyKind::kWindowType2);
  std::size_t posted = 0;
  for (std::size_t i = 0; i < 2 * kSendOperationCount; ++i) {
    const auto operation = static_cast<SendOperation>(i % kSendOperationCount);
    if (is_local(operation)) continue;
    ++posted;
    pair.b.post_receive(pair.qp_b, i, {pair.b.sge(0, 4096)});
    const bool invalidates = operation == SendOperation::kSendWithInvalidate;
    pair.a.post_send(pair.qp_a, {.operation = operation,
                                 .sges = {pair.a.sge(0, is_word(operation) ? 8 : 2001)},
                                 .remote_address = pair.b.address(0),
                                 .rkey = invalidates ? window : RKey{Endpoint::kKey}});
  }
  ASSERT_TRUE(pair.run([](unsigned, const Packet& packet) {
    const wire::PacketView view = packet.view();
    EXPECT_TRUE(view.bth.mig_req);
    EXPECT_EQ(view.bth.pkey, PKey{0xffff});
    EXPECT_FALSE(view.bth.fecn || view.bth.becn);
    EXPECT_EQ(view.bth.pad_bytes,
              wire::pad_bytes_for(static_cast<std::uint32_t>(view.payload.size())));
    EXPECT_EQ(packet.bytes[1] & std::byte{0x0f}, std::byte{0});  // transport version
    EXPECT_EQ(packet.bytes[4] & std::byte{0x3f}, std::byte{0});  // reserved
    EXPECT_EQ(packet.bytes[8] & std::byte{0x7f}, std::byte{0});  // reserved
    EXPECT_EQ(view.bth.ack_request, view.opcode->is_request && view.opcode->ends());
    return 1;
  }));
  EXPECT_EQ(pair.a.poll_all().size(), posted);
}

// P43: however little the application wants to hear.
TEST(ResponderCasesOfTheirOwn, AnAcknowledgementIsAskedForEvery256PacketsAndAtTheEnd) {
  Pair pair(wire_link(), {.path_mtu = 256, .signal_all = false}, 1 << 20);
  for (int i = 0; i < 8; ++i) {
    pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWrite,
                                 .sges = {pair.a.sge(0, 100'000)},
                                 .remote_address = pair.b.address(0),
                                 .rkey = {Endpoint::kKey},
                                 .flags = 0});
  }
  unsigned unasked = 0;
  ASSERT_TRUE(pair.run([&](unsigned, const Packet& packet) {
    const wire::PacketView view = packet.view();
    if (!view.opcode->is_request) return 1;
    unasked = view.bth.ack_request ? 0 : unasked + 1;
    EXPECT_LE(unasked, 256U + wire_link().max_run_packets);
    return 1;
  }));
  EXPECT_EQ(unasked, 0U);
  EXPECT_TRUE(pair.a.hca.is_drained(pair.qp_a.qp));
}

// P49 (IBTA 10.9.3): the same 15 bits, and one of the two a full member.
TEST_F(ResponderCases, PartitionKeysMatchByTheirLow15Bits) {
  std::uint64_t dropped = 0;
  std::uint32_t psn = kFirstPsn;
  for (const unsigned key : {0xffffU, 0x7fffU, 0x1234U, 0x9234U, 0x0000U, 0x8000U, 0x7ffeU}) {
    wire::Bth header = bth(Opcode::kRcWriteOnly, psn, true);
    header.pkey = {static_cast<std::uint16_t>(key)};
    endpoint.receive(make_packet(header, 8, reth(0, 8)));
    const bool is_taken = (key & 0x7fff) == 0x7fff;
    EXPECT_EQ(transmits().size(), is_taken ? 1U : 0U) << key;
    psn += is_taken ? 1 : 0;
    dropped += is_taken ? 0 : 1;
    EXPECT_EQ(endpoint.hca.counters().rx_bad_pkey, dropped) << key;
  }
  EXPECT_FALSE(endpoint.event());
}

// P58, P75, P56: what our own SGEs may not do fails here, before or after the remote effect.
class LocalFaults : public ::testing::TestWithParam<SendOperation> {
 protected:
  void expect_protection_error(memory::Sge sge) {
    Pair pair(wire_link(), {}, 4096);
    memory::MemoryRegion region = *pair.a.hca.regions().find(Endpoint::kKey);
    region.key = 0x777'0100;  // of another protection domain
    region.pd = PdId{2};
    ASSERT_EQ(pair.a.hca.regions().insert(region), memory::InsertOutcome::kInserted);
    region.key = 0x888'0100;  // that nobody may write to
    region.pd = Endpoint::kPd;
    region.access = memory::Access::kRemoteRead;
    ASSERT_EQ(pair.a.hca.regions().insert(region), memory::InsertOutcome::kInserted);
    if (sge.address == 0) sge.address = pair.a.address(0);
    pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, 4096)});
    pair.a.post_send(pair.qp_a, {.operation = GetParam(),
                                 .sges = {sge},
                                 .remote_address = pair.b.address(64),
                                 .rkey = {Endpoint::kKey},
                                 .compare_add = 1});
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(pair.a.hca.query_qp(pair.qp_a.qp).state, QpState::kErr);
    EXPECT_EQ(pair.a.buffer, std::vector<std::byte>(4096));
    std::uint64_t counter = 0;
    std::memcpy(&counter, pair.b.buffer.data() + 64, 8);
    EXPECT_LE(counter, GetParam() == SendOperation::kFetchAdd ? 1U : 0U);
  }
};

TEST_P(LocalFaults, OfAKeyThatIsNotThere) { expect_protection_error({0, 8, {0xbad'0bad}}); }
TEST_P(LocalFaults, OfAnotherProtectionDomain) { expect_protection_error({0, 8, {0x777'0100}}); }
TEST_P(LocalFaults, OfARangeThatWraps) { expect_protection_error({kTop, 0x400, {Endpoint::kKey}}); }
TEST_P(LocalFaults, OfMemoryThatMayNotBeWritten) {
  if (is_read_or_atomic(GetParam())) expect_protection_error({0, 8, {0x888'0100}});
}

INSTANTIATE_TEST_SUITE_P(Operations, LocalFaults,
                         ::testing::Values(SendOperation::kSend, SendOperation::kWrite,
                                           SendOperation::kRead, SendOperation::kCompareSwap,
                                           SendOperation::kFetchAdd));

// P61: zero bytes need no memory at all.
TEST(ResponderCasesOfTheirOwn, ZeroBytesNeedNoKeyAddressOrElement) {
  for (std::size_t i = 0; i < 5; ++i) {
    Pair pair(wire_link(), {}, 4096);
    pair.b.post_receive(pair.qp_b, 1, {});
    const auto operation = static_cast<SendOperation>(i);
    pair.a.post_send(pair.qp_a, {.operation = operation, .rkey = {0xdead'beef}});
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
    const auto received = pair.b.poll();
    const bool completes = i == 0 || i == 1 || i == 3;  // SENDs, and the WRITE with immediate
    EXPECT_EQ(received.has_value(), completes);
    EXPECT_EQ(received ? received->byte_count : 0, 0U);
  }
}

// P78: for the sizes of the case, and of several packets with the immediate in the last.
TEST(ResponderCasesOfTheirOwn, AWriteWithImmediateTellsHowMuchWasWritten) {
  for (const std::uint32_t bytes : {0U, 1U, 1024U, 1025U, 10'000U}) {
    Pair pair(wire_link(), {}, 1 << 16);
    pair.b.post_receive(pair.qp_b, 1, {});
    pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWriteWithImmediate,
                                 .sges = {pair.a.sge(0, bytes)},
                                 .remote_address = pair.b.address(0),
                                 .rkey = {Endpoint::kKey},
                                 .immediate = 9});
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.b.poll()->byte_count, bytes);
  }
}

}  // namespace
}  // namespace uroce::test

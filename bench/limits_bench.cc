// SPDX-License-Identifier: BSD-2-Clause
// What much of a kind costs, through stock libibverbs: registrations, a million live regions,
// 16,384 queue pairs, and whether any of them slows one down that works.
//
//   build/release/uroce run --netdev lo --uplink none -- build/release/bench/limits_bench
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename Value>
Value check(Value value, const char* what) {
  if (value) return value;
  std::perror(what);
  std::exit(1);
}
void check_zero(int error, const char* what) { check(error == 0, what); }

// Memory of this process that is there, in bytes.
std::size_t resident() {
  std::size_t total = 0, pages = 0;
  std::FILE* file = check(std::fopen("/proc/self/statm", "r"), "/proc/self/statm");
  check(std::fscanf(file, "%zu %zu", &total, &pages) == 2, "/proc/self/statm");
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

struct Device {
  Device() {
    ibv_device** list = check(ibv_get_device_list(nullptr), "ibv_get_device_list");
    context = check(ibv_open_device(check(list[0], "no device")), "ibv_open_device");
    ibv_free_device_list(list);
    pd = check(ibv_alloc_pd(context), "ibv_alloc_pd");
    cq = check(ibv_create_cq(context, 256, nullptr, nullptr, 0), "ibv_create_cq");
    check_zero(ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
  }
  ~Device() {
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_gid gid{};
};

constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

ibv_qp* make_qp(const Device& device, std::uint32_t requests) {
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = device.cq;
  a.qp_type = IBV_QPT_RC;
  a.cap = {.max_send_wr = requests,
           .max_recv_wr = requests,
           .max_send_sge = 1,
           .max_recv_sge = 1,
           .max_inline_data = 0};
  return check(ibv_create_qp(device.pd, &a), "ibv_create_qp");
}

// To itself.
void connect(const Device& device, ibv_qp* qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  check_zero(
      ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      "to INIT");
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_4096;
  a.dest_qp_num = qp->qp_num;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = device.gid;
  check_zero(ibv_modify_qp(qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             "to RTR");
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  a.max_rd_atomic = 1;
  check_zero(ibv_modify_qp(qp, &a,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
             "to RTS");
}

// One queue pair that writes to itself, 64 bytes at a time, one at a time.
class Worker {
 public:
  explicit Worker(const Device& device, unsigned access = kAccess)
      : device_(device),
        mr_(check(ibv_reg_mr(device.pd, memory_.data(), memory_.size(), access), "ibv_reg_mr")),
        qp_(make_qp(device, 64)) {
    connect(device, qp_);
  }
  ~Worker() {
    ibv_destroy_qp(qp_);
    ibv_dereg_mr(mr_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Nanoseconds a message, the best of some rounds.
  double run() {
    constexpr int kMessages = 50'000;
    double best = 1e9;
    for (int round = 0; round < 9; ++round) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < kMessages; ++i) write_once();
      best = std::min(best, seconds_since(start) * 1e9 / kMessages);
    }
    return best;
  }

 private:
  void write_once() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    ibv_sge sge{address, 64, mr_->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {address + 2'048, mr_->rkey};
    check_zero(ibv_post_send(qp_, &request, &bad), "ibv_post_send");
    ibv_wc completion{};
    while (ibv_poll_cq(device_.cq, 1, &completion) == 0) {
    }
    check_zero(completion.status, "completion");
  }

  const Device& device_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4'096);
  ibv_mr* mr_;
  ibv_qp* qp_;
};

void registrations(const Device& device) {
  constexpr int kPairs = 200'000;
  std::vector<std::byte> memory(4'096);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kPairs; ++i) {
    ibv_mr* const mr = check(ibv_reg_mr(device.pd, memory.data(), 64, kAccess), "ibv_reg_mr");
    check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
  }
  std::printf("%d registrations and deregistrations: %.0f ns a pair\n", kPairs,
              seconds_since(start) * 1e9 / kPairs);
}

void live_regions(const Device& device, Worker& worker) {
  constexpr std::size_t kRegions = 1'000'000;
  std::vector<std::byte> memory(4'096);
  std::vector<ibv_mr*> regions(kRegions);
  const double alone = worker.run();
  const std::size_t before = resident();
  const Clock::time_point start = Clock::now();
  double longest = 0;
  for (ibv_mr*& mr : regions) {
    const Clock::time_point one = Clock::now();
    mr = check(ibv_reg_mr(device.pd, memory.data(), 64, kAccess), "ibv_reg_mr");
    longest = std::max(longest, seconds_since(one));
  }
  const double took = seconds_since(start);
  const std::size_t bytes = resident() - before;
  std::printf("%zu live regions: %.2f s, %.0f ns each, the longest %.1f ms; %zu bytes each\n",
              kRegions, took, took * 1e9 / kRegions, longest * 1e3, bytes / kRegions);
  std::printf("  one busy queue pair: %.0f ns a WRITE before, %.0f ns now\n", alone, worker.run());
  const Clock::time_point end = Clock::now();
  for (ibv_mr* mr : regions) check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
  std::printf("  deregistered: %.0f ns each\n", seconds_since(end) * 1e9 / kRegions);
}

void idle_queue_pairs(const Device& device, Worker& worker) {
  ibv_device_attr attributes{};
  check_zero(ibv_query_device(device.context, &attributes), "ibv_query_device");
  std::vector<ibv_qp*> idle(static_cast<std::size_t>(attributes.max_qp) - 1);
  const double alone = worker.run();
  const std::size_t before = resident();
  const Clock::time_point start = Clock::now();
  for (ibv_qp*& qp : idle) qp = make_qp(device, 1);
  const std::size_t created = resident();
  for (ibv_qp* qp : idle) connect(device, qp);
  const std::size_t connected = resident();
  std::printf("%zu idle queue pairs: %.2f s; %zu bytes each, %zu when connected\n", idle.size(),
              seconds_since(start), (created - before) / idle.size(),
              (connected - before) / idle.size());
  std::printf("  one busy queue pair: %.0f ns a WRITE before, %.0f ns now\n", alone, worker.run());
  const Clock::time_point end = Clock::now();
  for (ibv_qp* qp : idle) check_zero(ibv_destroy_qp(qp), "ibv_destroy_qp");
  std::printf("  destroyed: %.2f s\n", seconds_since(end));
}

// Two system calls more for each message: one where it is sent from, one where it goes.
void on_demand(const Device& device, Worker& ordinary) {
  Worker worker(device, kAccess | IBV_ACCESS_ON_DEMAND);
  std::printf("WRITE of 64 bytes, ordinary memory: %.0f ns, on demand at both ends: %.0f ns\n",
              ordinary.run(), worker.run());
}

void sparse_region(const Device& device) {
  constexpr std::size_t kBytes = std::size_t{64} << 30;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  for (const unsigned on_demand : {0U, unsigned{IBV_ACCESS_ON_DEMAND}}) {
    const std::size_t before = resident();
    const Clock::time_point start = Clock::now();
    ibv_mr* const mr =
        check(ibv_reg_mr(device.pd, memory, kBytes, kAccess | on_demand), "ibv_reg_mr");
    const double took = seconds_since(start);
    std::printf("64 GiB sparse, %s: registered in %.3f ms, of which %zu MiB became real\n",
                on_demand == 0 ? "ordinary" : "on demand", took * 1e3, (resident() - before) >> 20);
    check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
    madvise(memory, kBytes, MADV_DONTNEED);
  }
  munmap(memory, kBytes);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Device device;
  Worker worker(device);
  // First, while nothing that was freed is there to be used again.
  idle_queue_pairs(device, worker);
  registrations(device);
  live_regions(device, worker);
  on_demand(device, worker);
  sparse_region(device);
}

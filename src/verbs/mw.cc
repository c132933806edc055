// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/mw.h"

#include <cerrno>
#include <mutex>
#include <new>

#include "verbs/failed.h"

namespace uroce::verbs {
namespace {

constexpr std::uint32_t kVariant = 0xff;

// What a window may be bound with. Of local rights nothing is left in a window; programs name them
// all the same.
constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_RELAXED_ORDERING;

constexpr memory::KeyKind kind_of(ibv_mw_type type) {
  return type == IBV_MW_TYPE_1 ? memory::KeyKind::kWindowType1 : memory::KeyKind::kWindowType2;
}

int insert(Mw& mw) {
  engine::Engine& engine = mw.domain.context.engine();
  if (!engine.quotas().mw.take()) return ENOMEM;
  memory::MemoryRegion window;
  window.pd = mw.domain.id;
  window.kind = kind_of(mw.type);
  const int error = engine.insert_region(window);
  if (error != 0) engine.quotas().mw.give_back();
  mw.index = {window.key};
  mw.rkey = mw.handle = window.key;
  return error;
}

void write_bind_request(const ibv_mw_bind& bind, std::uint32_t rkey, const Mw& mw,
                        transport::SendWqe& wqe) {
  wqe.wr_id = bind.wr_id;
  wqe.flags = 0;
  if ((bind.send_flags & IBV_SEND_SIGNALED) != 0) wqe.flags |= transport::send_flag::kSignaled;
  if ((bind.send_flags & IBV_SEND_FENCE) != 0) wqe.flags |= transport::send_flag::kFence;
  wqe.operation = transport::SendOperation::kBindWindow;
  write_binding(mw, rkey, bind.bind_info, wqe);
}

}  // namespace

Mw* alloc_mw(Pd& pd, ibv_pd& handle_pd, ibv_mw_type type) {
  if (pd.context.engine().is_abandoned()) return failed(EIO);
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return failed(EINVAL);
  Mw* mw = new (std::nothrow) Mw(pd);
  if (mw == nullptr) return failed(ENOMEM);
  mw->ibv_mw::context = handle_pd.context;
  mw->pd = &handle_pd;
  mw->type = type;
  if (const int error = insert(*mw); error != 0) {
    delete mw;
    return failed(error);
  }
  pd.users.fetch_add(1, std::memory_order_relaxed);
  mw->begin();
  return mw;
}

void Mw::leave_device() {
  engine::Engine& engine = domain.context.engine();
  engine.erase_window(index);
  engine.quotas().mw.give_back();
}

void dealloc_mw(Mw* mw) {
  mw->end();
  mw->domain.users.fetch_sub(1, std::memory_order_release);
  delete mw;
}

int check_binding(const ibv_mw* mw, ibv_mw_type type, const ibv_mw_bind_info& info) {
  if (mw == nullptr || mw->type != type) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  return (info.mw_access_flags & ~kKnownAccess) == 0 ? 0 : EINVAL;
}

void write_binding(const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
                   transport::SendWqe& wqe) {
  wqe.length = 0;
  wqe.sge_count = 0;
  wqe.rkey = {(mw_of(mw).index.value & ~kVariant) | (rkey & kVariant)};
  wqe.set_window_part({.region = {info.mr == nullptr ? 0 : info.mr->lkey},
                       .address = info.addr,
                       .length = info.length,
                       .access = static_cast<memory::Access>(info.mw_access_flags)});
}

int bind_mw(Qp& qp, Mw& mw, const ibv_mw_bind& bind) {
  if (const int error = check_binding(&mw, IBV_MW_TYPE_1, bind.bind_info); error != 0) return error;
  if (qp.service == transport::Service::kUd || qp.service == transport::Service::kXrcTarget ||
      qp.service == transport::Service::kRawPacket) {
    return EINVAL;
  }
  if (qp.core.state.load(std::memory_order_acquire) < transport::QpState::kRts) return EINVAL;
  if (qp.context.engine().is_abandoned()) return EIO;
  const std::uint32_t rkey = ibv_inc_rkey(mw.rkey);
  {
    const std::lock_guard posters(qp.send_lock);
    transport::SendQueue& queue = qp.core.send_queue;
    if (queue.free_slots() == 0) return ENOMEM;
    write_bind_request(bind, rkey, mw, queue.at(queue.next_post()));
    queue.post(1);
  }
  mw.rkey = rkey;
  qp.context.engine().ring(qp.doorbell);
  return 0;
}

}  // namespace uroce::verbs

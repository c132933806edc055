// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/qp_handle.h"

#include <cerrno>
#include <memory>
#include <new>

#include "verbs/qp.h"

namespace uroce::verbs {
namespace {

using engine::Engine;

// Null: no such target, or it is on its way out.
Qp* find_target(Engine::Section& section, const Xrcd& xrcd, std::uint32_t number) {
  if (number > 0xff'ffff) return nullptr;
  const transport::Qp* const core = section.hca().demux().find({number});
  if (core == nullptr || core->service != transport::Service::kXrcTarget) return nullptr;
  Qp& qp = *static_cast<Qp*>(core->user);
  const bool is_ours = core->xrcd == xrcd.domain.id && &qp.context == &xrcd.context;
  return is_ours && !qp.is_closing ? &qp : nullptr;
}

QpHandle& handle_of(Qp& qp, const ibv_qp& part) {
  QpHandle* handle = qp.handles.front();
  while (&handle->part != &part) handle = qp.handles.next(*handle);
  return *handle;
}

// Its events that nobody has read are gone.
void silence(Qp& qp, QpHandle& handle) {
  handle.events_given -= qp.context.take_back_events(&handle.part);
}

void wait_for(const QpHandle& handle) {
  ibv_qp& part = handle.part;
  wait_for_acknowledgement(part.mutex, part.cond, part.events_completed, handle.events_given);
}

}  // namespace

Qp* open_qp(Xrcd& xrcd, ibv_qp& part, std::uint32_t number) {
  std::unique_ptr<QpHandle> handle(new (std::nothrow) QpHandle(part, &xrcd));
  if (handle == nullptr || xrcd.context.engine().is_abandoned()) {
    errno = handle == nullptr ? ENOMEM : EIO;
    return nullptr;
  }
  Engine::Section section(xrcd.context.engine());
  Qp* const qp = find_target(section, xrcd, number);
  if (qp == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  qp->handles.push_back(*handle.release());
  return qp;
}

bool close_shared(Qp& qp, ibv_qp& part) {
  std::unique_ptr<QpHandle> closed;
  {
    Engine::Section section(qp.context.engine());
    QpHandle& handle = handle_of(qp, part);
    qp.is_closing = qp.handles.front() == &handle && qp.handles.next(handle) == nullptr;
    if (qp.is_closing) return false;
    closed.reset(&handle);
    silence(qp, handle);
    handle.hook.unlink();
  }
  wait_for(*closed);
  return true;
}

bool drop_handle(Qp& qp, ibv_qp& part) {
  const std::unique_ptr<QpHandle> dropped(&handle_of(qp, part));
  dropped->hook.unlink();
  return qp.handles.empty();
}

void silence(Qp& qp) {
  for (QpHandle* h = qp.handles.front(); h != nullptr; h = qp.handles.next(*h)) silence(qp, *h);
}

void wait_for_last(Qp& qp) { wait_for(*qp.handles.front()); }

}  // namespace uroce::verbs

// SPDX-License-Identifier: BSD-2-Clause
// A memory window: an index among the keys for as long as it lives, and what binds it. Windows of
// type 1 are bound by ibv_bind_mw alone, those of type 2 by a work request alone.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "transport/work_request.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

namespace uroce::verbs {

// What the application holds is its base, since a work request names it so.
struct Mw final : ibv_mw, Made {
  explicit Mw(Pd& owner) : ibv_mw{}, Made(Kind::kMw, owner.context), domain(owner) {}

  Pd& domain;
  RKey index;  // its variant is of no account

 private:
  void leave_device() override;
};
inline const Mw& mw_of(const ibv_mw& handle) { return static_cast<const Mw&>(handle); }

// Null, and errno. `handle_pd` is what the application will find in it.
[[nodiscard]] Mw* alloc_mw(Pd& pd, ibv_pd& handle_pd, ibv_mw_type type);
// It is unbound, if it was bound.
void dealloc_mw(Mw* mw);

// Of type 1: 0, and the window has its next key; or an errno.
[[nodiscard]] int bind_mw(Qp& qp, Mw& mw, const ibv_mw_bind& bind);

// A work request that binds: what can be said when it is posted (0 or EINVAL), and its operands.
// Whether the binding is allowed is found out in its turn.
[[nodiscard]] int check_binding(const ibv_mw* mw, ibv_mw_type type, const ibv_mw_bind_info& info);
void write_binding(const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
                   transport::SendWqe& wqe);

}  // namespace uroce::verbs

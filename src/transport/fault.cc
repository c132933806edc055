// SPDX-License-Identifier: BSD-2-Clause
#include "transport/fault.h"

namespace uroce::transport {

using wire::NakCode;

// IBTA 9.9.3.1, responder error behaviour for RC. A fault whose news a receive completion carries
// raises its event only when there is no receive WQE in hand.
const std::array<FaultRow, kFaultCount> kFaults = {{
    /* kNone */
    {NakCode::kPsnSequence, false, WcStatus::kSuccess, EventType::kQpFatal},
    /* kNotReady */
    {NakCode::kPsnSequence, false, WcStatus::kSuccess, EventType::kQpFatal},
    /* kSequence: class B, the requester retries */
    {NakCode::kPsnSequence, false, WcStatus::kSuccess, EventType::kQpFatal},
    /* kInvalidRequest: class C */
    {NakCode::kInvalidRequest, true, WcStatus::kRemoteInvalidRequest, EventType::kQpRequestError},
    /* kAccessFlags: class C; the peer asks for what was never offered */
    {NakCode::kInvalidRequest, true, WcStatus::kLocalAccessError, EventType::kQpRequestError},
    /* kRemoteKey: class C */
    {NakCode::kRemoteAccess, true, WcStatus::kLocalAccessError, EventType::kQpAccessError},
    /* kInvalidateKey: class J; its receive has what Linux's rxe gives it */
    {NakCode::kRemoteAccess, true, WcStatus::kRemoteInvalidRequest, EventType::kQpAccessError},
    /* kReceiveTooShort: class C */
    {NakCode::kInvalidRequest, true, WcStatus::kLocalLengthError, EventType::kQpRequestError},
    /* kReceiveMemory: class A, our own application's fault */
    {NakCode::kRemoteOperational, true, WcStatus::kLocalProtectionError, EventType::kQpFatal},
}};

WcStatus status_of(NakCode nak) {
  switch (nak) {
    case NakCode::kPsnSequence:
      return WcStatus::kRetryExceeded;
    case NakCode::kInvalidRequest:
      return WcStatus::kRemoteInvalidRequest;
    case NakCode::kRemoteAccess:
      return WcStatus::kRemoteAccessError;
    case NakCode::kRemoteOperational:
      return WcStatus::kRemoteOperationError;
    case NakCode::kInvalidRdRequest:
      return WcStatus::kBadResponse;
  }
  return WcStatus::kBadResponse;
}

}  // namespace uroce::transport

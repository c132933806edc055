// SPDX-License-Identifier: BSD-2-Clause
// The ICRC seen by a receiver that cannot see all it covers. A UDP socket hands out neither IPv4's
// identification nor its fragment flags, and senders differ in both: Linux rxe numbers its packets,
// a segmenting kernel counts 0, 1, 2 ..., a socket with DF sends 0; NICs set or clear DF.
//
// The CRC is linear: the difference between the ICRC received and the one computed with
// identification 0 is a linear image of what the two fields really were. Undone byte by byte back
// to where they stand, it *is* them; where more than those 17 bits come out, the packet is damaged.
//
// What this costs: of 2^32 wrong ICRCs 2^17 are taken for right, so damage is seen with a chance of
// 1 - 2^-15 instead of 1 - 2^-32, and no class of damage, not even a single bit, is sure to be seen
// by it. The checksums underneath (Ethernet's, and UDP's where the sender fills it) are untouched.
// Who knows more about the sender (DF always set, identifications that count up) can ask for it of
// the fit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uroce::wire {

struct IdentificationFit {
  bool fits = false;
  bool dont_fragment = true;
  std::uint16_t identification = 0;
};

// `computed` is the ICRC with identification 0 and DF set (IcrcFlow's defaults), `covered_bytes`
// how many bytes from the BTH to the pad it covers. A table look-up and a
// 32-bit polynomial product; compare for equality first.
[[nodiscard]] IdentificationFit icrc_fit_identification(std::uint32_t received,
                                                        std::uint32_t computed,
                                                        std::size_t covered_bytes);

}  // namespace uroce::wire

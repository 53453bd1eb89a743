// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The proof of the secret against a peer that changes, cuts or makes up any of its three messages.
#include "comm/auth.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

enum Changed : uint8_t { kHello, kChallenge, kProof, kAllMadeUp };

// The real message with the input's bytes XORed over it, so that the fuzzer reaches behind random
// nonces; or the input itself.
Bytes Change(Bytes real, uint8_t how, std::string_view with) {
  if (how % 2 == 1) return Bytes(with);
  for (size_t i = 0; i < with.size(); ++i) {
    if (i == real.size()) return real + Bytes(with.substr(i));
    real[i] = static_cast<char>(real[i] ^ with[i]);
  }
  return real;
}

}  // namespace

void RunHandshake(std::string_view input) {
  static const bool started = StartAuth().ok();
  Require(started, "libsodium starts");
  static const Credentials shared{SecretFromToken("fuzz"), "job", 7};
  Script script(input);
  const auto changed = static_cast<Changed>(script.Byte() % 4);
  const uint8_t how = script.Byte();
  ClientHandshake client(shared, 3, 0, Purpose::kControl);
  ServerHandshake server(shared, 0, Purpose::kControl);
  Bytes challenge, nothing;

  if (changed == kAllMadeUp) {
    while (!script.done() && server.Take(script.Text(), &challenge).ok()) {
    }
    return Require(!server.done(), "nobody proves a secret that he does not know");
  }
  Bytes hello = client.Hello();
  const Bytes real_hello = hello;
  if (changed == kHello) hello = Change(std::move(hello), how, script.Rest());
  const bool greeted = server.Take(hello, &challenge).ok();
  Require(greeted == !challenge.empty(), "a greeting is answered if and only if it is accepted");
  Require(challenge.size() <= kMaxHandshakeFrame, "a challenge is short");
  if (!greeted) return;
  Bytes received = challenge;
  if (changed == kChallenge) received = Change(std::move(received), how, script.Rest());
  const auto answer = client.Answer(received);
  Require(answer.ok() == (received == challenge && hello == real_hello),
          "a client believes the server's own challenge to its own greeting only");
  if (!answer.ok()) return;
  Bytes proof = *answer;
  if (changed == kProof) proof = Change(std::move(proof), how, script.Rest());
  const bool proven = server.Take(proof, &nothing).ok();
  Require(proven == (proof == *answer) && proven == server.done(),
          "a server believes the one proof only");
  if (proven) Require(server.rank() == 3, "the rank is the one proven");
}

Seeds HandshakeSeeds() {
  (void)StartAuth().ok();
  ClientHandshake client({SecretFromToken("fuzz"), "job", 7}, 3, 0, Purpose::kControl);
  const Bytes hello = client.Hello();
  const Bytes flip("\1", 1), later(40, '\0');
  return {{"unchanged", Bytes("\0\0", 2)},
          {"hello-made-up", Bytes("\0\1", 2) + hello},
          {"hello-other-magic", Bytes("\0\0", 2) + flip},
          {"hello-other-nonce", Bytes("\0\0", 2) + later + flip},
          {"challenge-other-incarnation", Bytes("\1\0", 2) + flip},
          {"challenge-other-mac", Bytes("\1\0", 2) + later + later + flip},
          {"challenge-longer", Bytes("\1\0", 2) + Bytes(200, '\0')},
          {"proof-other-rank", Bytes("\2\0", 2) + flip},
          {"proof-other-mac", Bytes("\2\0", 2) + later + flip},
          {"made-up", Bytes("\3\0", 2) + AsText(hello) + AsText(Bytes(52, 'p'))}};
}

}  // namespace ckpt::fuzz

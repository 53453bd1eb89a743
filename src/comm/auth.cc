// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The challenge, on libsodium's crypto_auth (HMAC-SHA-512-256); the only source that names
// libsodium. Test: tests/unit/comm/parts_test.cc
#include "comm/auth.h"

#include <sodium.h>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint32_t kMagic = 0x31504B43;  // "CKP1"
constexpr size_t kNonceBytes = 32;

static_assert(kSecretBytes == crypto_auth_KEYBYTES);

std::string Random(size_t bytes) {
  std::string out(bytes, '\0');
  randombytes_buf(out.data(), out.size());
  return out;
}

const unsigned char* U(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct Side {
  const char* label;  // keeps a server's proof from being played back as a client's
  int32_t rank;
};

Bytes Mac(const Credentials& who, Side side, Purpose purpose, int32_t server_rank,
          std::string_view client_nonce, std::string_view server_nonce) {
  WireWriter w;
  w.Str(side.label);
  w.I32(side.rank);
  w.U8(static_cast<uint8_t>(purpose));
  w.I32(server_rank);
  w.Str(client_nonce);
  w.Str(server_nonce);
  w.U64(who.incarnation);
  w.Str(who.job_id);
  Bytes mac(crypto_auth_BYTES, '\0');
  crypto_auth(reinterpret_cast<unsigned char*>(mac.data()), U(w.bytes()), w.bytes().size(),
              U(who.secret));
  return mac;
}

// Says only that the secret is known, whatever the job.
Bytes SecretMac(const std::string& secret, std::string_view client_nonce,
                std::string_view server_nonce) {
  return Mac({secret, "", 0}, {"secret", -1}, Purpose::kControl, -1, client_nonce, server_nonce);
}

struct Greeting {
  Purpose purpose = Purpose::kControl;
  std::string nonce, tag;
};

bool Parse(std::string_view frame, Greeting* out) {
  WireReader r(frame);
  const uint32_t magic = r.U32();
  out->purpose = static_cast<Purpose>(r.U8());
  out->nonce = r.Str();
  out->tag = r.Str();
  return r.AtEnd() && magic == kMagic && out->nonce.size() == kNonceBytes &&
         out->tag.size() == 2 * crypto_generichash_BYTES_MIN;
}

bool Equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status Refused(const char* why) { return Status(Code::kComm, why); }

}  // namespace

Status StartAuth() {
  if (sodium_init() < 0) return Status(Code::kInternal, "libsodium does not start");
  return Status();
}

std::string RandomSecret() { return Random(kSecretBytes); }

uint64_t RandomNumber() {
  uint64_t out = 0;
  randombytes_buf(&out, sizeof out);
  return out | 1;  // 0 means "not known"
}

std::string SecretFromToken(std::string_view token) {
  std::string out(kSecretBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(out.data()), out.size(), U(token),
                     token.size(), nullptr, 0);
  return out;
}

std::string HashName(std::string_view job_id) {
  unsigned char hash[crypto_generichash_BYTES_MIN];
  crypto_generichash(hash, sizeof hash, U(job_id), job_id.size(), nullptr, 0);
  std::string out(2 * sizeof hash + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), hash, sizeof hash);
  out.pop_back();
  return out;
}

std::string TagOfGreeting(std::string_view frame) {
  Greeting greeting;
  return Parse(frame, &greeting) ? greeting.tag : "";
}

Status ServerHandshake::Take(std::string_view frame, Bytes* reply) {
  WireReader r(frame);
  if (client_nonce_.empty()) {
    Greeting greeting;
    if (!Parse(frame, &greeting) || greeting.purpose != purpose_) {
      return Refused("not a greeting of this library");
    }
    client_nonce_ = std::move(greeting.nonce);
    server_nonce_ = Random(kNonceBytes);
    WireWriter w;
    w.U64(credentials_.incarnation);
    w.Str(server_nonce_);
    w.Str(SecretMac(credentials_.secret, client_nonce_, server_nonce_));
    w.Str(Mac(credentials_, {"server", own_rank_}, purpose_, own_rank_, client_nonce_,
              server_nonce_));
    *reply = w.Take();
    return Status();
  }
  const int32_t rank = r.I32();
  const uint64_t incarnation = r.U64();
  const std::string mac = r.Str();
  if (!r.AtEnd() || done_) return Refused("malformed proof");
  if (incarnation != credentials_.incarnation) return Refused("peer of an earlier context");
  if (!Equal(mac, Mac(credentials_, {"client", rank}, purpose_, own_rank_, client_nonce_,
                      server_nonce_))) {
    return Refused("wrong proof of the job's secret");
  }
  rank_ = rank;
  done_ = true;
  return Status();
}

ClientHandshake::ClientHandshake(Credentials credentials, int32_t own_rank, int32_t server_rank,
                                 Purpose purpose)
    : credentials_(std::move(credentials)),
      own_rank_(own_rank),
      server_rank_(server_rank),
      purpose_(purpose),
      nonce_(Random(kNonceBytes)) {}

Bytes ClientHandshake::Hello() const {
  WireWriter w;
  w.U32(kMagic);
  w.U8(static_cast<uint8_t>(purpose_));
  w.Str(nonce_);
  w.Str(HashName(credentials_.job_id));
  return w.Take();
}

Result<Bytes> ClientHandshake::Answer(std::string_view challenge) {
  WireReader r(challenge);
  const uint64_t incarnation = r.U64();
  const std::string server_nonce = r.Str();
  const std::string secret_mac = r.Str();
  const std::string mac = r.Str();
  if (!r.AtEnd() || server_nonce.size() != kNonceBytes) return Refused("malformed challenge");
  if (!Equal(secret_mac, SecretMac(credentials_.secret, nonce_, server_nonce))) {
    return Refused("the other side did not prove the job's secret (is CKPT_TOKEN the same?)");
  }
  if (credentials_.incarnation == 0) credentials_.incarnation = incarnation;
  if (incarnation != credentials_.incarnation) return Refused("another incarnation of the job");
  if (!Equal(mac, Mac(credentials_, {"server", server_rank_}, purpose_, server_rank_, nonce_,
                      server_nonce))) {
    return Refused("another job, restart or context of it listens there");
  }
  WireWriter w;
  w.I32(own_rank_);
  w.U64(incarnation);
  w.Str(Mac(credentials_, {"client", own_rank_}, purpose_, server_rank_, nonce_, server_nonce));
  return w.Take();
}

}  // namespace ckpt

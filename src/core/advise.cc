// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Advise: a gate and one phase, whose result is whether any rank was signalled.
// Test: tests/process/l_advise_test.cc
#include <algorithm>

#include "core/session.h"
#include "util/text.h"

namespace ckpt {
namespace {

const Bytes kNobody = "0", kSomebody = "1";

}  // namespace

Result<bool> SessionImpl::Advise(int64_t step, bool signalled, const Status& local) {
  CKPT_RETURN_IF_ERROR(Usable());
  CallScope scope(group(), Cat("ckpt_advise(step=", step, ")"));
  Call call;
  call.op = Op::kAdvise;
  call.step = step;
  call.timeout_ms = options_.contract_timeout_ms;
  const Status own = Localize(local);
  const Result<uint64_t> round = group_->Arrive(call, own);
  if (!round.ok()) return scope.Done(round.status());
  if (!own.ok()) return scope.Done(own);
  group_->Contribute(*round, 1, Status(), signalled ? kSomebody : kNobody, false);
  if (group_->rank() == 0) {
    const Result<std::vector<Bytes>> all = group_->Collect(*round, 1);
    if (all.ok()) {
      const bool any = std::find(all->begin(), all->end(), kSomebody) != all->end();
      group_->Publish(*round, 1, Status(), {any ? kSomebody : kNobody}, true);
    }
  }
  const Result<Bytes> answer = group_->Await(*round, 1);
  (void)scope.Done(answer.status());
  if (!answer.ok()) return answer.status();
  return *answer == kSomebody;
}

}  // namespace ckpt

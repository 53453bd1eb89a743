// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// `ckpt verify`: every byte of a step against its record.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/checkpoint.h"
#include "cli/json.h"
#include "cli/text.h"

namespace cli {
namespace {

// One line on the terminal, rewritten; nothing if stderr is not one.
class Progress {
 public:
  Progress() : on_(::isatty(STDERR_FILENO) == 1) {}
  ~Progress() { Clear(); }
  void Tell(const ckpt_event& event) {
    if (!on_ || event.bytes_total == 0) return;
    const int percent = static_cast<int>(100.0 * static_cast<double>(event.bytes_done) /
                                         static_cast<double>(event.bytes_total));
    if (percent == shown_) return;
    shown_ = percent;
    std::fprintf(stderr, "\r\x1b[K%3d %% of %s  %s", percent, HumanBytes(event.bytes_total).c_str(),
                 Escaped(event.text).c_str());
    std::fflush(stderr);
  }
  void Clear() {
    if (shown_ >= 0) std::fputs("\r\x1b[K", stderr);
    shown_ = -1;
  }

 private:
  const bool on_;
  int shown_ = -1;
};

int32_t OnEvent(void* user, const ckpt_event* event) {
  if (event->kind == CKPT_EVENT_PROGRESS) static_cast<Progress*>(user)->Tell(*event);
  return 0;
}

std::string Coloured(const char* text, const char* colour) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = (no_color != nullptr && *no_color != '\0') || ::isatty(STDOUT_FILENO) != 1;
  return plain ? text : std::string("\x1b[") + colour + "m" + text + "\x1b[0m";
}

Json ErrorJson(const ckpt_error* error) {
  ckpt_error_cause cause = {};
  cause.struct_size = sizeof cause;
  Json out;
  out["status"] = ckpt_error_status(error);
  out["message"] = ckpt_error_message(error);
  if (ckpt_error_get_cause(error, &cause) == CKPT_OK) {
    out["file"] = cause.path == nullptr ? Json(nullptr) : Json(cause.path);
    out["name"] = cause.name == nullptr ? Json(nullptr) : Json(cause.name);
  }
  return out;
}

// `checkpoint` may be one that could not be opened.
Exit Answer(const Request& request, const Checkpoint& checkpoint, Exit exit,
            const ckpt_error* error) {
  const bool open = checkpoint.get() != nullptr;
  const ckpt_checkpoint_info step = open ? checkpoint.Opened() : ckpt_checkpoint_info{};
  if (request.json) {
    Json out = NewJson("verify", request.path);
    out["checkpoint"] = open ? StepJson(step) : Json(nullptr);
    out["ok"] = exit == kGood;
    out["error"] = exit == kGood ? Json(nullptr) : ErrorJson(error);
    return Write(Dump(out));
  }
  const std::string name =
      (open ? "step " + std::to_string(step.step) : Escaped(request.path)) + ": ";
  if (exit == kDamaged) return Write(name + Coloured("DAMAGED", "31") + "\n");
  if (exit != kGood) return kGood;
  return Write(name + Coloured("good", "32") + ", " + HumanBytes(step.bytes) + " in " +
               std::to_string(checkpoint.Files().size()) + " files\n");
}

// The status of opening and of comparing; NOT_FOUND of a file that the record lists is damage.
ckpt_status OpenAndCompare(const Request& request, Checkpoint* checkpoint, Error* error) {
  if (const ckpt_status status = checkpoint->TryOpen(request, error); status != CKPT_OK)
    return status;
  Progress progress;
  ckpt_error* raw = nullptr;
  const ckpt_status status = ckpt_reader_verify(checkpoint->get(), OnEvent, &progress, &raw);
  error->reset(raw);
  return status == CKPT_ERR_NOT_FOUND ? CKPT_ERR_CORRUPT : status;
}

}  // namespace

Exit Verify(const Request& request) {
  Checkpoint checkpoint;
  Error error;
  const ckpt_status status = OpenAndCompare(request, &checkpoint, &error);
  const Exit exit = status == CKPT_OK ? kGood : Complain(status, error.get());
  const Exit written = Answer(request, checkpoint, exit, error.get());
  return exit == kGood ? written : exit;
}

}  // namespace cli

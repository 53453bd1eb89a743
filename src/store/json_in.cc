// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A SAX handler that builds the value and stops at the first thing that we do not accept:
// nlohmann's own parser keeps the last of two equal keys and has no limit on depth. Test:
// tests/unit/store/json_in_test.cc
#include "store/json_in.h"

#include <utility>
#include <vector>

#include "util/text.h"

namespace ckpt {
namespace {

class Builder {
 public:
  // nlohmann's SAX interface; false stops the parse.
  bool null() { return Put(nullptr); }
  bool boolean(bool v) { return Put(v); }
  bool number_integer(Json::number_integer_t v) { return Put(v); }
  bool number_unsigned(Json::number_unsigned_t v) { return Put(v); }
  bool number_float(Json::number_float_t v, const std::string&) { return Put(v); }
  bool string(std::string& v) { return Put(std::move(v)); }
  bool binary(Json::binary_t&) { return Stop("binary value"); }
  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(std::string& name) {
    auto* object = open_.back()->get_ptr<Json::object_t*>();
    auto [it, fresh] = object->emplace(name, nullptr);
    slot_ = &it->second;
    if (fresh) return true;
    duplicate_ = Printable(name);
    return Stop(Cat("the key \"", duplicate_, "\" is there twice"));
  }

  template <typename Error>
  bool parse_error(size_t position, const std::string&, const Error&) {
    return Stop(Cat("not valid JSON at byte ", position));
  }

  Json Take() { return std::move(root_); }
  const std::string& error() const { return error_; }
  const std::string& duplicate() const { return duplicate_; }

 private:
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json value) {
    if (open_.size() >= kMaxJsonDepth) return Stop(Cat("deeper than ", kMaxJsonDepth, " levels"));
    open_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Stop(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  // Pointers stay valid: a container grows only while none of its children is open.
  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (auto* array = open_.back()->get_ptr<Json::array_t*>()) {
      array->push_back(std::move(value));
      return &array->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  Json root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // of the key just read
  std::string error_, duplicate_;
};

}  // namespace

Result<Json> ParseJsonObject(std::string_view text) {
  // The parser would skip a byte order mark or white space; our formats begin with the brace.
  if (!text.starts_with('{')) return Status(Code::kCorrupt, "does not begin with \"{\"");
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    Cause cause;
    cause.name = builder.duplicate();
    return Status(Code::kCorrupt, builder.error(), std::move(cause));
  }
  return builder.Take();
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

JsonFields::JsonFields(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Fail("not an object");
}

void JsonFields::Fail(const std::string& why) {
  if (status_.ok()) status_ = Status(Code::kCorrupt, Cat(where_, ": ", why));
}

const Json* JsonFields::Find(const char* key, bool (*is)(const Json&), const char* type) {
  if (!status_.ok()) return nullptr;
  const auto it = object_.find(key);
  if (it == object_.end()) {
    Fail(Cat("\"", key, "\" is missing"));
  } else if (!is(*it)) {
    Fail(Cat("\"", key, "\" is not ", type));
  } else {
    return &*it;
  }
  return nullptr;
}

std::string JsonFields::Str(const char* key) {
  const Json* found = Find(
      key, [](const Json& j) { return j.is_string(); }, "a string");
  return found != nullptr ? *found->get_ptr<const std::string*>() : std::string();
}

uint64_t JsonFields::U64(const char* key, uint64_t max) {
  const Json* found = Find(
      key, [](const Json& j) { return j.is_number_unsigned(); }, "a whole number from 0");
  if (found == nullptr) return 0;
  const uint64_t value = *found->get_ptr<const Json::number_unsigned_t*>();
  if (value <= max) return value;
  Fail(Cat("\"", key, "\" is ", value, ", above ", max));
  return 0;
}

int64_t JsonFields::I64(const char* key, int64_t min, int64_t max) {
  const Json* found = Find(
      key, [](const Json& j) { return j.is_number_integer(); }, "a whole number");
  if (found == nullptr) return 0;
  const bool huge = found->is_number_unsigned() &&
                    *found->get_ptr<const Json::number_unsigned_t*>() > uint64_t{INT64_MAX};
  const int64_t value = found->get<int64_t>();
  if (!huge && value >= min && value <= max) return value;
  Fail(Cat("\"", key, "\" is ", JsonText(*found), ", not ", min, " to ", max));
  return 0;
}

const Json& JsonFields::Array(const char* key) {
  static const Json empty = Json::array();
  const Json* found = Find(
      key, [](const Json& j) { return j.is_array(); }, "a list");
  return found != nullptr ? *found : empty;
}

const Json& JsonFields::Object(const char* key) {
  static const Json empty = Json::object();
  const Json* found = Find(
      key, [](const Json& j) { return j.is_object(); }, "an object");
  return found != nullptr ? *found : empty;
}

}  // namespace ckpt

// Misuse that every operation shares: handle, structs, pointers, workspace, stream. Made by walking the table of bases.
#include <string>

#include "misuse.h"

namespace misuse {
namespace {

// Large enough that looking for a handle's mark in it stays inside.
ggm_handle_t stray_handle() {
  alignas(256) static unsigned char zeros[4096];
  return reinterpret_cast<ggm_handle_t>(zeros);
}

std::string query_name(const BaseInfo& base) { return std::string("ggm_") + base.operation + "_workspace_size"; }
std::string call_name(const BaseInfo& base) { return std::string("ggm_") + base.operation; }

void add_handle(std::vector<Row>& rows, Base b) {
  const BaseInfo& base = info(b);
  const auto null = [](Call& c) { c.handle = nullptr; };
  const auto stray = [](Call& c) { c.handle = stray_handle(); };
  for (const auto& [name, stage] : {std::pair(query_name(base), Stage::query), std::pair(call_name(base), Stage::call)}) {
    // The stage names the function that is called, so that each has a row of its own.
    rows.push_back({name + ".handle", "NULL", b, null, GGM_STATUS_INVALID_HANDLE, {"handle", "NULL"}, stage});
    rows.push_back({name + ".handle", "no handle of ggm_create", b, stray, GGM_STATUS_INVALID_HANDLE, {"handle"}, stage});
    rows.push_back({name + ".problem",
                    "NULL",
                    b,
                    [](Call& c) { c.null_problem = true; },
                    GGM_STATUS_NULL_POINTER,
                    {"problem", "NULL"},
                    stage});
  }
  rows.push_back({query_name(base) + ".bytes",
                  "NULL",
                  b,
                  [](Call& c) { c.null_bytes = true; },
                  GGM_STATUS_NULL_POINTER,
                  {"bytes", "NULL"},
                  Stage::query});
  rows.push_back({call_name(base) + ".tensors",
                  "NULL",
                  b,
                  [](Call& c) { c.null_tensors = true; },
                  GGM_STATUS_NULL_POINTER,
                  {"tensors", "NULL"},
                  Stage::call});
}

// struct_size is the first field of every struct.
void set_struct_size(Call& call, std::size_t offset, std::size_t size) {
  *reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(&call) + offset) = static_cast<std::uint32_t>(size);
}

void add_struct_sizes(std::vector<Row>& rows, Base b) {
  const BaseInfo& base = info(b);
  struct Part {
    const char* type;
    const char* name;
    std::size_t offset, bytes;
    unsigned char Call::*tail;
    Stage stage;
  };
  for (const Part& part :
       {Part{base.problem_type, "problem", base.problem_offset, base.problem_bytes, &Call::problem_tail, Stage::problem},
        Part{base.tensors_type, "tensors", base.tensors_offset, base.tensors_bytes, &Call::tensors_tail, Stage::call}}) {
    const std::string subject = std::string(part.type) + ".struct_size";
    for (std::size_t size : {std::size_t{0}, std::size_t{4}, part.bytes - 1, std::size_t{0xffffffff}})
      rows.push_back({subject,
                      std::to_string(size),
                      b,
                      [part, size](Call& c) {
                        c.*part.tail = 1;
                        set_struct_size(c, part.offset, size);
                      },
                      GGM_STATUS_INVALID_STRUCT_SIZE,
                      {part.name, "struct_size", std::to_string(size), std::to_string(part.bytes)},
                      part.stage});
    rows.push_back({subject,
                    "larger, with a field in use that is not known",
                    b,
                    [part](Call& c) {
                      c.*part.tail = 1;
                      set_struct_size(c, part.offset, part.bytes + 8);
                    },
                    GGM_STATUS_INVALID_STRUCT_SIZE,
                    {part.name, "struct_size", std::to_string(part.bytes + 8), std::to_string(part.bytes)},
                    part.stage});
  }
  // Every tensors struct has `reserved` behind struct_size.
  rows.push_back({std::string(base.tensors_type) + ".reserved",
                  "1",
                  b,
                  [offset = base.tensors_offset](Call& c) {
                    reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(&c) + offset)[1] = 1;
                  },
                  GGM_STATUS_RESERVED_NOT_ZERO,
                  {"reserved", "1", "0"},
                  Stage::call});
}

void add_pointer(std::vector<Row>& rows, Base b, const Pointer& p) {
  const BaseInfo& base = info(b);
  const std::string subject = std::string(base.tensors_type) + "." + p.name;
  if (p.need != Need::optional) {
    rows.push_back({subject,
                    "NULL",
                    b,
                    [p](Call& c) { pointer_of(c, p) = nullptr; },
                    p.need == Need::by_type ? GGM_STATUS_TYPE_MISMATCH : GGM_STATUS_NULL_POINTER,
                    {p.name, "NULL"},
                    Stage::call});
  }
  rows.push_back({subject,
                  "not aligned",
                  b,
                  [p](Call& c) { pointer_of(c, p) = static_cast<unsigned char*>(pointer_of(c, p)) + 1; },
                  GGM_STATUS_MISALIGNED,
                  {p.name, std::to_string(p.alignment)},
                  Stage::call});
  rows.push_back({call_name(base) + ".workspace",
                  std::string("over ") + p.name,
                  b,
                  [p](Call& c) { pointer_of(c, p) = c.workspace; },
                  GGM_STATUS_ALIASING,
                  {"workspace", p.name},
                  Stage::call,
                  Where::both,
                  true});
}

// Every output over every other pointer; C and D of grouped_gemm may be the same memory.
void add_overlaps(std::vector<Row>& rows, Base b) {
  const BaseInfo& base = info(b);
  for (const Pointer& out : base.pointers) {
    if (!out.output) continue;
    for (const Pointer& other : base.pointers) {
      const bool twice = other.output && &other <= &out;
      const bool in_place =
          std::string(base.operation) == "grouped_gemm" && std::string(other.name) == "c" && std::string(out.name) == "d";
      if (twice || in_place) continue;
      rows.push_back({std::string(base.tensors_type) + "." + out.name,
                      std::string("over ") + other.name,
                      b,
                      [out, other](Call& c) { pointer_of(c, out) = pointer_of(c, other); },
                      GGM_STATUS_ALIASING,
                      {out.name, other.name},
                      Stage::call});
    }
  }
}

void add_workspace(std::vector<Row>& rows, Base b) {
  const BaseInfo& base = info(b);
  const std::string call = call_name(base);
  rows.push_back({call + ".workspace",
                  "NULL",
                  b,
                  [](Call& c) { c.workspace = nullptr; },
                  GGM_STATUS_NULL_POINTER,
                  {"workspace", "NULL"},
                  Stage::call,
                  Where::both,
                  true});
  rows.push_back({call + ".workspace",
                  "not aligned",
                  b,
                  [](Call& c) { c.workspace = static_cast<unsigned char*>(c.workspace) + 16; },
                  GGM_STATUS_MISALIGNED,
                  {"workspace", "256"},
                  Stage::call,
                  Where::both,
                  true});
  rows.push_back({call + ".workspace_bytes",
                  "one too few",
                  b,
                  [](Call& c) { c.workspace_bytes = c.required_bytes - 1; },
                  GGM_STATUS_WORKSPACE_TOO_SMALL,
                  {"workspace_bytes", "@required"},
                  Stage::call,
                  Where::both,
                  true});
  rows.push_back({call + ".workspace_bytes",
                  "0",
                  b,
                  [](Call& c) { c.workspace_bytes = 0; },
                  GGM_STATUS_WORKSPACE_TOO_SMALL,
                  {"workspace_bytes = 0", "@required"},
                  Stage::call,
                  Where::both,
                  true});
  rows.push_back({call + ".stream",
                  "a stream on the host backend",
                  b,
                  [](Call& c) { c.stream = reinterpret_cast<ggm_stream_t>(some_pointer()); },
                  GGM_STATUS_INVALID_STREAM,
                  {"stream", "NULL"},
                  Stage::call,
                  Where::host});
}

}  // namespace

std::vector<Row> common_rows() {
  std::vector<Row> rows;
  for (int i = 0; i < kBases; ++i) {
    const Base b = static_cast<Base>(i);
    add_handle(rows, b);
    add_struct_sizes(rows, b);
    for (const Pointer& p : info(b).pointers) add_pointer(rows, b, p);
    add_overlaps(rows, b);
    add_workspace(rows, b);
  }
  return rows;
}

}  // namespace misuse

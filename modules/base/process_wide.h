// State of which a process has one, also where two copies of gridbuf are in the process.
//
// Python's extension links libgridbuf, and has a copy of its code. So the objects behind
// allocation, threads, devices and names are made once, by libgridbuf if it is loaded, which comes
// first. Their code is that of the copy that made them, and it is never unloaded. The copies must
// be of one build, because the objects have no stable layout: the number of the build says so
// (build_defs/build_number.bzl). Copies of other builds have separate states, and their handles are
// refused. A C++ program that links the modules has one copy, and does not need libgridbuf.
#ifndef GRIDBUF_MODULES_BASE_PROCESS_WIDE_H_
#define GRIDBUF_MODULES_BASE_PROCESS_WIDE_H_

#include <cstdint>

namespace gridbuf {

/// The number of this build; 0 in a program that links the modules.
std::uint64_t build_number() noexcept;

/// What the process's first call with this name made, in any copy of this build.
void* process_wide_object(const char* name, void* (*make)());

/// The process's one T of that name. It is never destroyed: threads may outlive main(). A name has
/// one type. To be called once, for a static variable, before any thread.
template <class T>
T& process_wide(const char* name, void* (*make)() = []() -> void* { return new T(); }) {
  return *static_cast<T*>(process_wide_object(name, make));
}

}  // namespace gridbuf

#endif  // GRIDBUF_MODULES_BASE_PROCESS_WIDE_H_

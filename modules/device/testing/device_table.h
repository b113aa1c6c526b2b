// The C table of a device: how a program that shares nothing with gridbuf reaches device bytes.
//
// The conformance suite takes it from the capsule "gridbuf_device_table_v1" of
// gridbuf.testing.device_table() and lays it over with ctypes, so the text below is an interface:
// it changes only with `version`. `version` 1. All int functions: 0 = done; otherwise error_text()
// says what went wrong in this thread's last failed call.
#ifndef GRIDBUF_DEVICE_TESTING_DEVICE_TABLE_H_
#define GRIDBUF_DEVICE_TESTING_DEVICE_TABLE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
typedef struct { int32_t device_type, device_id; uint64_t base, length_bytes; int32_t host_accessible, device_accessible; } gridbuf_pointer_info;   // DLPack's device codes; 1 = ordinary host memory
typedef struct { uint32_t version /*1*/, struct_bytes; const char* name /*"emulated","cuda"*/;
  int (*copy)(uint64_t target, uint64_t source, uint64_t length_bytes, uint64_t stream);        // enqueued on stream, then waits for that stream: done at return
  int (*synchronize)(uint64_t stream);                                                           // 0: the whole device
  int (*pointer_info)(uint64_t address, gridbuf_pointer_info* info);
  int (*slow_fill)(uint64_t target, int32_t value, uint64_t length_bytes, uint32_t milliseconds, uint64_t stream);  // enqueues: wait, then fill the bytes; returns at once
  int (*stream_create)(uint64_t* stream);                                                        // a non-blocking stream
  int (*stream_destroy)(uint64_t stream);
  int (*stream_query)(uint64_t stream, int32_t* idle);                                           // an error unless it is a live stream
  const char* (*error_text)(void);                                                               // of this thread's last error
} gridbuf_device_table;                                                                          // all int functions: 0 = done
// clang-format on

#ifdef __cplusplus
}
#endif

#endif  // GRIDBUF_DEVICE_TESTING_DEVICE_TABLE_H_

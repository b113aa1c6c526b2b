/* gridbuf.h: the C interface of gridbuf, in libgridbuf.so.
 *
 * Purpose. C, C++, Fortran and other languages make arrays and storages, wrap their own memory, and
 * exchange both, without gridbuf's compiler. An array is memory on the host or on a device. A
 * storage has a buffer on each side, and gridbuf copies between the sides what has changed.
 *
 * Handles. A `gridbuf_array` and a `gridbuf_storage` are handles of shared memory. Views and copies
 * of a handle are new handles. Release each handle once; the memory is freed with the last handle
 * and export. Several threads may use a handle at once, as long as none of them releases it or sets
 * its halo. Elements are not locked.
 *
 * Errors. A function that can fail returns a status, and `gridbuf_last_error` has the text. After
 * an error, outputs are NULL or unchanged, and the state is as before the call. No function throws,
 * ends the process, or keeps a pointer to an argument. A NULL pointer, a released handle, a handle
 * of the wrong kind, and a wrong number are GRIDBUF_VALUE as far as C can tell. A pointer to memory
 * that is too short cannot be found.
 *
 * Structs of options begin with their size, so that they can grow. Initialise them:
 *
 *   gridbuf_options options = GRIDBUF_OPTIONS_INIT;
 *   int64_t shape[3] = {64, 64, 80}, halo[6] = {3, 3, 3, 3, 0, 0};
 *   options.ndim = 3, options.shape = shape, options.halo = halo, options.backend = "gt:gpu";
 *   gridbuf_storage* field;
 *   if (gridbuf_storage_create(&options, &field) != GRIDBUF_OK) puts(gridbuf_last_error());
 *
 * Sizes named `_bytes` and strides are in bytes, extents and halos in elements.
 */
#ifndef GRIDBUF_H_
#define GRIDBUF_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number in the name of the library, libgridbuf.so.0. Functions and fields are added within a
 * number. What exists does not change. */
#define GRIDBUF_ABI 0

/* The largest number of dimensions. */
#define GRIDBUF_MAX_NDIM 64

/* The length of the longest name of a dimension or element type here, with the closing NUL. */
#define GRIDBUF_NAME_BYTES 64

/* Left out: the default of a slice's start or stop. */
#define GRIDBUF_NONE INT64_MIN

/* The name of a PyCapsule that holds a gridbuf_storage: gridbuf.storage.from_c makes a storage of
 * Python of it, another handle, and gridbuf.storage.to_c the reverse. Who makes the capsule
 * releases its handle, in the capsule's destructor. */
#define GRIDBUF_STORAGE_CAPSULE "gridbuf_storage.0"

/* DLPack's struct, of dlpack.h. */
struct DLManagedTensorVersioned;

typedef struct gridbuf_array gridbuf_array;
typedef struct gridbuf_storage gridbuf_storage;
typedef struct gridbuf_workspace gridbuf_workspace;

/* What a call returns. In Python, an error has the exception in brackets. */
typedef int32_t gridbuf_status;
enum {
  GRIDBUF_OK = 0,
  GRIDBUF_VALUE = 1,              /* a value out of its bounds (ValueError) */
  GRIDBUF_TYPE = 2,               /* a value of the wrong kind (TypeError) */
  GRIDBUF_INDEX = 3,              /* an index out of bounds (IndexError) */
  GRIDBUF_MEMORY = 4,             /* out of memory (MemoryError) */
  GRIDBUF_BUFFER = 5,             /* memory that cannot be exported or imported (BufferError) */
  GRIDBUF_NO_SUCH_BUFFER = 6,     /* the storage does not have this side (GTNoSuchBufferError) */
  GRIDBUF_DEVICE_UNAVAILABLE = 7, /* (DeviceUnavailableError) */
  GRIDBUF_SYNC_CONFLICT = 8,      /* both sides are newer in one region (SyncConflictError) */
  GRIDBUF_INTERNAL = 9            /* a defect of gridbuf: please report it (RuntimeError) */
};

/* Where memory is: DLPack's device types. */
enum {
  GRIDBUF_MEMORY_HOST = 1,
  GRIDBUF_MEMORY_CUDA = 2,
  GRIDBUF_MEMORY_PINNED = 3,
  GRIDBUF_MEMORY_MANAGED = 13
};

/* Kinds of storages. */
enum {
  GRIDBUF_STORAGE_HOST = 1,        /* host memory */
  GRIDBUF_STORAGE_DEVICE = 2,      /* device memory */
  GRIDBUF_STORAGE_BOTH = 3,        /* a buffer on each side, which gridbuf keeps equal */
  GRIDBUF_STORAGE_CUDA_MANAGED = 4 /* one buffer of managed memory */
};

/* Sides of a storage. */
enum { GRIDBUF_HOST = 0, GRIDBUF_DEVICE = 1 };

/* What an access does with the elements. GRIDBUF_WRITE promises to write every element of the view
 * before any is read, and saves the copy from the opposite side. */
enum { GRIDBUF_READ = 0, GRIDBUF_WRITE = 1, GRIDBUF_READ_WRITE = 2 };

/* Kinds of dimensions. */
enum {
  GRIDBUF_HORIZONTAL = 0,
  GRIDBUF_LOCAL = 1, /* the neighbours of a point */
  GRIDBUF_VERTICAL = 2,
  GRIDBUF_DATA = 3 /* components, tracers, time */
};

/* Bits of gridbuf_options.flags. */
enum {
  GRIDBUF_ZEROED = 1,   /* elements and padding are 0 */
  GRIDBUF_POPULATE = 2, /* commit the pages now */
  GRIDBUF_READONLY = 4, /* of wrapped memory */
  GRIDBUF_DELAYED = 8   /* of a new storage: the first call that uses the handle allocates */
};

/* Parameters of a new or wrapped field. 0 and NULL are the defaults. Nothing is kept. */
typedef struct gridbuf_options {
  size_t struct_bytes; /* sizeof(gridbuf_options) */
  int32_t ndim;        /* 0 to GRIDBUF_MAX_NDIM; each list below has this length */
  int32_t memory;      /* of an array, GRIDBUF_MEMORY_…; default: of the backend, else the host */
  int32_t kind;        /* of a storage, GRIDBUF_STORAGE_…; default: BOTH for a backend of a GPU */
  uint32_t flags;      /* GRIDBUF_ZEROED, … */
  int32_t device_id;   /* of wrapped memory of a device */
  int32_t reserved;    /* 0 */
  const int64_t* shape;
  const char* dtype;              /* "float64" (the default), "int32", "bool", "<f4", … */
  const char* backend;            /* a preset, such as "gt:gpu": order, alignment, memory */
  const char* const* dims;        /* names, "I", "Cell", "0"; default: I, J, K, 0, 1, … */
  const int32_t* dim_kinds;       /* GRIDBUF_HORIZONTAL, …; default: the declared kinds */
  const int64_t* halo;            /* 2 × ndim: lower and upper of each dimension; default: 0 */
  const int32_t* layout;          /* rank of each dimension, ndim - 1 is contiguous */
  const int64_t* aligned_index;   /* the aligned element; default: the first without the halo */
  int64_t alignment_bytes;        /* 1 to 2^20; default: of the backend, else 1 */
  const int32_t* device_layout;   /* of the device's buffer of BOTH; default: as the host's */
  int64_t device_alignment_bytes; /* as alignment_bytes, for the device's buffer of BOTH */
} gridbuf_options;
#define GRIDBUF_OPTIONS_INIT \
  {sizeof(gridbuf_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Properties of an array, or of one side of a storage. Lists have ndim entries. */
typedef struct gridbuf_info {
  size_t struct_bytes; /* sizeof(gridbuf_info) */
  void* data;          /* element (0, …, 0). Of a storage: only gridbuf_storage_access gives it */
  int32_t ndim;
  int32_t memory;                   /* GRIDBUF_MEMORY_… */
  int32_t device_id;                /* 0 for memory of the host */
  int32_t kind;                     /* of the storage; 0 for an array */
  int32_t readonly;                 /* 0 or 1 */
  uint8_t dlpack_code, dlpack_bits; /* of the element type; lanes are 1; bits 0: DLPack has none */
  uint8_t reserved[2];
  char dtype[GRIDBUF_NAME_BYTES]; /* "float64", "datetime64[ns]", …; cut if longer */
  int64_t itemsize_bytes;
  int64_t nbytes; /* of the elements, without padding */
  int64_t alignment_bytes;
  int64_t shape[GRIDBUF_MAX_NDIM];
  int64_t strides_bytes[GRIDBUF_MAX_NDIM];
  int64_t lower_halo[GRIDBUF_MAX_NDIM];
  int64_t upper_halo[GRIDBUF_MAX_NDIM];
  int64_t aligned_index[GRIDBUF_MAX_NDIM];
  int32_t layout[GRIDBUF_MAX_NDIM]; /* rank of each dimension */
} gridbuf_info;

/* Kinds of items. */
enum { GRIDBUF_INDEX_AT = 0, GRIDBUF_SLICE = 1, GRIDBUF_NEW_AXIS = 2, GRIDBUF_ELLIPSIS = 3 };

/* One item between the brackets of a[…]. */
typedef struct gridbuf_item {
  int32_t kind;     /* GRIDBUF_INDEX_AT, … */
  int32_t reserved; /* 0 */
  int64_t start;    /* the index, or the start of a slice or GRIDBUF_NONE */
  int64_t stop;     /* of a slice, or GRIDBUF_NONE */
  int64_t step;     /* of a slice, not 0 */
} gridbuf_item;

/* Statistics and settings of large host blocks (2 MiB and more), of the whole process. */
typedef struct gridbuf_memory_info {
  size_t struct_bytes; /* sizeof(gridbuf_memory_info) */
  int64_t live_blocks, live_bytes, peak_live_bytes;
  int64_t cached_blocks, cached_bytes, cache_limit_bytes;
  int64_t hits, misses, refusals; /* blocks served from the cache, from the kernel, and refused */
} gridbuf_memory_info;

/* Called once when wrapped memory is no longer used, on any thread. */
typedef void (*gridbuf_release)(void* context);

/* The version of the library, such as "0.1.0", and its GRIDBUF_ABI. */
const char* gridbuf_version(void);
int32_t gridbuf_abi(void);

/* The text of this thread's last error; "" before the first. Valid until the thread's next error.
 */
const char* gridbuf_last_error(void);

/* ---- Arrays ---- */

/* New memory with undefined elements, unless flags has GRIDBUF_ZEROED. Errors: VALUE for an invalid
 * option; MEMORY; DEVICE_UNAVAILABLE. */
gridbuf_status gridbuf_array_create(const gridbuf_options* options, gridbuf_array** out);

/* An array over existing memory of `options->memory`. `data` is element (0, …, 0). NULL strides are
 * those of C order, or of options->layout without padding; they may be negative or 0.
 * options->alignment_bytes is checked. `release` may be NULL; then the memory must outlive the
 * array and all that is made of it. After an error `release` is not called. Errors: VALUE. */
gridbuf_status gridbuf_array_wrap(void* data, const int64_t* strides_bytes,
                                  const gridbuf_options* options, gridbuf_release release,
                                  void* context, gridbuf_array** out);

/* Ends the handle. NULL is OK. */
gridbuf_status gridbuf_array_release(gridbuf_array* array);

/* Fills `info`, whose struct_bytes must be set. */
gridbuf_status gridbuf_array_info(const gridbuf_array* array, gridbuf_info* info);

/* The name and the kind (GRIDBUF_HORIZONTAL, …) of dimension `axis`. `kind` may be NULL. Errors:
 * INDEX. */
gridbuf_status gridbuf_array_dim(const gridbuf_array* array, int32_t axis,
                                 char name[GRIDBUF_NAME_BYTES], int32_t* kind);

/* The view a[items…], by the rules of NumPy. Errors: INDEX for an index out of bounds, too many
 * items or a second ellipsis; VALUE for a step of 0. */
gridbuf_status gridbuf_array_view(const gridbuf_array* array, const gridbuf_item* items,
                                  int32_t count, gridbuf_array** out);

/* Dimension i of the view is dimension axes[i]; NULL reverses them. */
gridbuf_status gridbuf_array_transpose(const gridbuf_array* array, const int32_t* axes,
                                       gridbuf_array** out);

/* The view without the halo. */
gridbuf_status gridbuf_array_domain(const gridbuf_array* array, gridbuf_array** out);

/* A copy with the same layout in new memory; `memory` 0 is that of the array. */
gridbuf_status gridbuf_array_copy(const gridbuf_array* array, int32_t memory, gridbuf_array** out);

/* Copies the elements of `source`, broadcast to this shape and converted to this element type. They
 * may overlap. On the host the copy is complete at return; a copy that a device does is enqueued:
 * see gridbuf_array_wait. A copy converts between floats (float16, float32, float64), and
 * int32 and int64 to float32 and float64, as NumPy rounds; and it swaps bytes. Errors: TYPE for
 * another pair of element types; VALUE for shapes that do not fit, or read-only memory. */
gridbuf_status gridbuf_array_copy_from(const gridbuf_array* array, const gridbuf_array* source);

/* Writes the element at `element`, of the array's element type, to every element. */
gridbuf_status gridbuf_array_fill(const gridbuf_array* array, const void* element);

/* Waits for the work on the memory that gridbuf has enqueued. */
gridbuf_status gridbuf_array_wait(const gridbuf_array* array);

/* The array as a tensor of DLPack 1, which keeps the memory alive until its deleter has run.
 * Errors: BUFFER for a type or strides that DLPack cannot describe. */
gridbuf_status gridbuf_array_to_dlpack(const gridbuf_array* array,
                                       struct DLManagedTensorVersioned** out);

/* The memory of a tensor. Takes over the tensor in every case: after an error its deleter has run.
 * `options`, which may be NULL, gives dims, halo and aligned_index; its other fields are ignored.
 * Errors: BUFFER, with the id of the rule of DLPack that is broken; VALUE. */
gridbuf_status gridbuf_array_from_dlpack(struct DLManagedTensorVersioned* tensor,
                                         const gridbuf_options* options, gridbuf_array** out);

/* ---- Storages ---- */

/* New memory, on one side or both, as options->kind says. Errors as gridbuf_array_create. With
 * GRIDBUF_DELAYED, errors of options are those of this call. The first function that uses the
 * handle allocates as if it were this one, and can fail with its further errors; then the next
 * allocates. gridbuf_storage_release does not. */
gridbuf_status gridbuf_storage_create(const gridbuf_options* options, gridbuf_storage** out);

/* A storage over the memory of arrays, which it keeps. Names and halo are those of the host's
 * array. `kind` 0: HOST for a host's array, DEVICE for a device's, BOTH for two, which must be
 * equal. BOTH with one array gets new memory for the missing side. `options`, which may be NULL,
 * gives device_layout and device_alignment_bytes. Errors: VALUE; MEMORY; DEVICE_UNAVAILABLE. */
gridbuf_status gridbuf_storage_wrap(const gridbuf_array* host, const gridbuf_array* device,
                                    int32_t kind, const gridbuf_options* options,
                                    gridbuf_storage** out);

/* Ends the handle. NULL is OK. */
gridbuf_status gridbuf_storage_release(gridbuf_storage* storage);

/* Fills `info`, whose struct_bytes must be set, with the properties of one side; data is NULL. Does
 * not copy. Errors: NO_SUCH_BUFFER. */
gridbuf_status gridbuf_storage_info(const gridbuf_storage* storage, int32_t side,
                                    gridbuf_info* info);

/* As gridbuf_array_dim. */
gridbuf_status gridbuf_storage_dim(const gridbuf_storage* storage, int32_t axis,
                                   char name[GRIDBUF_NAME_BYTES], int32_t* kind);

/* As the functions of arrays. A view has the memory and the synchronisation of its storage. */
gridbuf_status gridbuf_storage_view(const gridbuf_storage* storage, const gridbuf_item* items,
                                    int32_t count, gridbuf_storage** out);
gridbuf_status gridbuf_storage_transpose(const gridbuf_storage* storage, const int32_t* axes,
                                         gridbuf_storage** out);
gridbuf_status gridbuf_storage_domain(const gridbuf_storage* storage, gridbuf_storage** out);

/* Sets the halo of this handle: 2 × ndim widths, lower and upper of each dimension. Errors: VALUE
 * for a halo that does not fit. */
gridbuf_status gridbuf_storage_set_halo(gridbuf_storage* storage, const int64_t* halo);

/* How deep the halo is valid: 2 × ndim numbers of points next to the domain that have the values of
 * the neighbours' domains, in the order of the halo. Writes through gridbuf lessen them. */
gridbuf_status gridbuf_storage_valid_halo(const gridbuf_storage* storage, int64_t* depths);
/* Says that the program has filled the halo so deep; NULL: all of it; zeros: that it has written
 * the domain. Errors: VALUE for more points than the halo has, or a view of a part. */
gridbuf_status gridbuf_storage_mark_halo(const gridbuf_storage* storage, const int64_t* depths);

/* Makes the elements of this view current on the side, unless the mode is WRITE, and gives the
 * address of element (0, …, 0). Writing modes mark the elements as modified. The address is valid
 * until the handle is released. Its elements may be used as the mode says until the next access or
 * copy that writes to them or uses them on the opposite side. On a device they are ready for work
 * on the thread's current stream. Errors: NO_SUCH_BUFFER; VALUE for a wrong mode, or writing to
 * read-only memory; those of the device, after which nothing is changed. */
gridbuf_status gridbuf_storage_access(const gridbuf_storage* storage, int32_t side, int32_t mode,
                                      void** data);

/* Ends a write that work on a device does: call it after you have enqueued the work on the thread's
 * current stream. After writes on the host it is not needed. */
gridbuf_status gridbuf_storage_end_write(const gridbuf_storage* storage, int32_t side);

/* The elements of a side as an array. While the array or an export of it lives, gridbuf takes the
 * side's elements as modified at any time, if `writable`. Errors: NO_SUCH_BUFFER; VALUE for
 * read-only memory. */
gridbuf_status gridbuf_storage_array(const gridbuf_storage* storage, int32_t side, int32_t writable,
                                     gridbuf_array** out);

/* Whether the side's elements of this view are current (1) or not (0). */
gridbuf_status gridbuf_storage_is_current(const gridbuf_storage* storage, int32_t side,
                                          int32_t* out);

/* Marks this view as modified on the side. Errors: SYNC_CONFLICT, without a change, if it is marked
 * on the opposite side. */
gridbuf_status gridbuf_storage_set_modified(const gridbuf_storage* storage, int32_t side);

/* Marks the whole storage as equal on both sides, without a copy. */
gridbuf_status gridbuf_storage_set_synchronized(const gridbuf_storage* storage);

/* Copies what is modified on the opposite side of the whole storage to `side`; with `force` all
 * elements. */
gridbuf_status gridbuf_storage_update(const gridbuf_storage* storage, int32_t side, int32_t force);

/* Copies in both directions what is modified. */
gridbuf_status gridbuf_storage_synchronize(const gridbuf_storage* storage);

/* A new storage with the same parameters and elements. */
gridbuf_status gridbuf_storage_copy(const gridbuf_storage* storage, gridbuf_storage** out);

/* 128 bits that identify the type and, at each index of the domain, the value: gridbuf.digest of
 * Python has them in hexadecimal. Digests of parts with different indices add up, each number
 * modulo 2^64. */
gridbuf_status gridbuf_storage_digest(const gridbuf_storage* storage, uint64_t digest[2]);

/* Copies the elements of `source`, of the same shape, converted as gridbuf_array_copy_from does.
 * They may overlap. Errors: TYPE, VALUE. */
gridbuf_status gridbuf_storage_copy_from(const gridbuf_storage* storage,
                                         const gridbuf_storage* source);

/* ---- Workspaces ---- */

/* Memory for temporaries of the host: a stack of blocks in a range of addresses. Memory is used
 * when it is touched. Errors: VALUE for a limit below 1, MEMORY. */
gridbuf_status gridbuf_workspace_create(int64_t limit_bytes, gridbuf_workspace** out);

/* Ends the workspace, with all its blocks. NULL is OK. */
gridbuf_status gridbuf_workspace_release(gridbuf_workspace* workspace);

/* A new block, with undefined bytes. The alignment is 1 to 2^20; 0 is 64. Errors: VALUE; MEMORY
 * beyond the limit. */
gridbuf_status gridbuf_workspace_push(const gridbuf_workspace* workspace, int64_t total_bytes,
                                      int64_t alignment_bytes, void** block);

/* Ends the block that was pushed last. Errors: VALUE for another one. */
gridbuf_status gridbuf_workspace_pop(const gridbuf_workspace* workspace, void* block);

/* The most bytes that were in use so far. */
gridbuf_status gridbuf_workspace_peak(const gridbuf_workspace* workspace, int64_t* peak_bytes);

/* Gives the pages above the blocks to the system. `freed_bytes` may be NULL. */
gridbuf_status gridbuf_workspace_trim(const gridbuf_workspace* workspace, int64_t* freed_bytes);

/* ---- The process ---- */

/* How many threads a large job may use, at least 1; and sets it: 1 to 256. */
int32_t gridbuf_thread_count(void);
gridbuf_status gridbuf_set_thread_count(int32_t count);

/* Fills `info`, whose struct_bytes must be set. */
gridbuf_status gridbuf_memory_statistics(gridbuf_memory_info* info);

/* Limits the bytes of freed blocks that are kept; 0 keeps none. Errors: VALUE. */
gridbuf_status gridbuf_set_cache_limit(int64_t limit_bytes);

/* Limits the bytes of large blocks in use and kept together; a request beyond it is MEMORY.
 * INT64_MAX does not limit. Errors: VALUE. */
gridbuf_status gridbuf_set_memory_limit(int64_t limit_bytes);

/* Returns kept blocks to the system until at most `keep_bytes` are left. `freed_bytes` may be NULL.
 */
gridbuf_status gridbuf_trim_memory(int64_t keep_bytes, int64_t* freed_bytes);

/* Switches the emulated device, a device for tests in host memory, on (1) or off (0) for later
 * allocations. `before`, which may be NULL, gets the previous state. */
gridbuf_status gridbuf_use_emulated_device(int32_t on, int32_t* before);

/* OK if a device is available; else DEVICE_UNAVAILABLE, whose text has the reason. */
gridbuf_status gridbuf_check_device(void);

/* Waits for all work of the device. */
gridbuf_status gridbuf_synchronize_device(void);

/* Sets the current stream of this thread: a cudaStream_t, 1 (the legacy default stream), 2 (the
 * default stream of the thread). `before`, which may be NULL, gets the previous one. Errors: VALUE
 * for 0. */
gridbuf_status gridbuf_set_stream(uint64_t stream, uint64_t* before);

#ifdef __cplusplus
}
#endif

#endif /* GRIDBUF_H_ */

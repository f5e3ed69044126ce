/* Tenon's C interface: models and programs are handles, tensors describe the caller's memory.
 *
 * Functions that can fail return a tenon_status; tenon_last_error() in the calling thread returns
 * the message. No function throws or ends the process. Results are written only with TENON_OK.
 *
 * A handle is a number in the shape of a pointer: freed handles and handles of another kind are
 * rejected. Handles of models and programs may be used from any number of threads concurrently; a
 * context or a trainer from one at a time: a concurrent call is rejected. A context keeps its
 * program alive.
 *
 * Functions marked [runtime] are also in libtenon_runtime and in the shared objects that `tenon
 * compile -o MODEL.so` writes. Options are JSON objects as text; NULL stands for {}. Unknown
 * options are rejected.
 */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when functions are added. Existing functions keep their meaning: symbols are versioned. */
#define TENON_ABI_VERSION 2

typedef enum tenon_status {
  TENON_OK = 0,
  TENON_COMPARISON_FAILED = 1,
  TENON_USAGE = 2,
  TENON_INVALID_MODEL = 3,
  TENON_UNSUPPORTED = 4,
  TENON_OUT_OF_MEMORY = 5,
  TENON_DEVICE = 6,
  TENON_INTERNAL = 7,
  TENON_INTERRUPTED = 130
} tenon_status;

/* Elements of types below a byte take one byte each; f16, bf16 and f8 are raw bits. */
typedef enum tenon_dtype {
  TENON_NO_DTYPE = 0, /* port of another type than a tensor */
  TENON_F64 = 1,
  TENON_F32 = 2,
  TENON_F16 = 3,
  TENON_BF16 = 4,
  TENON_F8E4M3FN = 5,
  TENON_F8E4M3FNUZ = 6,
  TENON_F8E5M2 = 7,
  TENON_F8E5M2FNUZ = 8,
  TENON_F8E8M0 = 9,
  TENON_F4E2M1 = 10,
  TENON_I64 = 11,
  TENON_I32 = 12,
  TENON_I16 = 13,
  TENON_I8 = 14,
  TENON_I4 = 15,
  TENON_I2 = 16,
  TENON_U64 = 17,
  TENON_U32 = 18,
  TENON_U16 = 19,
  TENON_U8 = 20,
  TENON_U4 = 21,
  TENON_U2 = 22,
  TENON_BOOL = 23,
  TENON_C64 = 24,
  TENON_C128 = 25,
  TENON_STRING = 26 /* only as a tenon_value */
} tenon_dtype;

/* A tensor in the caller's memory. `data` has at least the alignment of its elements (f32: 4
 * bytes; 64 bytes and more are fastest), and points to host memory, row-major. A kernel-only
 * program for a GPU also accepts memory of that GPU, after the work on its default stream; it is
 * used in place if its address is a multiple of 256, and copied on the device otherwise.
 * `strides` are in elements; NULL stands for row-major. */
typedef struct tenon_tensor {
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t rank;
  int32_t dtype; /* tenon_dtype */
} tenon_tensor;

/* An input, an output, a weight or a state of a program, which owns texts and shape. */
typedef struct tenon_port {
  const char* name;
  const char* type;     /* "f32[N, 3, 224, 224]" */
  const int64_t* shape; /* -1: symbolic or data-dependent */
  int32_t rank;         /* -1: data-dependent, or not a tensor */
  int32_t dtype;        /* TENON_NO_DTYPE: not a tensor */
} tenon_port;

typedef enum tenon_port_kind {
  TENON_INPUT = 0,
  TENON_OUTPUT = 1,
  TENON_WEIGHT = 2,
  TENON_STATE = 3 /* since version 2: a value that a context passes from one run to the next */
} tenon_port_kind;

typedef struct tenon_model_handle* tenon_model;
typedef struct tenon_program_handle* tenon_program;
typedef struct tenon_context_handle* tenon_context;
typedef struct tenon_trainer_handle* tenon_trainer;
typedef struct tenon_value_handle* tenon_value;

/* ---- errors and texts ------------------------------------------------------------------- */
/* [runtime] "0.1" */
TENON_API const char* tenon_version(void);
/* [runtime] TENON_ABI_VERSION of the library, not of the header. */
TENON_API int tenon_abi_version(void);
/* [runtime] Returns the message of the last failed call in this thread, valid until the next
 * failure; "" without a failure. */
TENON_API const char* tenon_last_error(void);
/* [runtime] Frees a text that a function returned. Accepts NULL. */
TENON_API void tenon_text_free(char* text);

/* ---- models ----------------------------------------------------------------------------- */
/* Opens a model of any format: a file, "zoo:resnet50?batch=N", "random:7". */
TENON_API tenon_status tenon_model_open(const char* source, tenon_model* model);
/* Parses a model in memory, which may be freed afterwards. */
TENON_API tenon_status tenon_model_parse(const void* bytes, size_t size, tenon_model* model);
/* JSON: name, inputs, outputs, symbols, parameters, flops, operators. */
TENON_API tenon_status tenon_model_describe(tenon_model model, char** json);
/* Writes "onnx", "tenon", or another format that `tenon convert` names. */
TENON_API tenon_status tenon_model_save(tenon_model model, const char* format, const char* path);
/* Applies passes to a model. Options: passes, without (lists of names), stop_after, set
 * ({"fuse.mode": "relay"}), shapes ({"x": [1, 3, 224, 224]}: values of symbols). */
TENON_API tenon_status tenon_model_transform(tenon_model model, const char* options,
                                             tenon_model* result);
/* Compiles a model. Options: target ("native", "x86-64-v3", "cuda:sm_90a"), precision ("f16",
 * "bf16", "tf32"), threads (for which kernels are selected), winograd, tune_seconds, untuned,
 * prefer (names of candidates to use wherever they accept: ["wgmma"]), specialised_shapes
 * (["x:8x3x224x224"]), swappable_weights (true: every weight, or a list of names:
 * tenon_program_set_weight can replace them). */
TENON_API tenon_status tenon_model_compile(tenon_model model, const char* options,
                                           tenon_program* program);
TENON_API tenon_status tenon_model_free(tenon_model model);

/* ---- programs --------------------------------------------------------------------------- */
/* [runtime] Loads a saved program. It is machine code: trust it like an executable. */
TENON_API tenon_status tenon_program_load(const char* path, tenon_program* program);
/* [runtime] Loads a program from memory, which is copied. */
TENON_API tenon_status tenon_program_parse(const void* bytes, size_t size, tenon_program* program);
/* [runtime] Loads the program embedded in the shared object that contains this function. */
TENON_API tenon_status tenon_program_self(tenon_program* program);
/* Saves FILE.tnn, or FILE.so: a shared object with the [runtime] functions and the program.
 * Options of FILE.so: constants ("FILE.bin": a separate file in the same folder). */
TENON_API tenon_status tenon_program_save(tenon_program program, const char* path,
                                          const char* options);
/* [runtime] JSON: name, target, inputs, outputs, weights, steps, bytes of code, constants and
 * arena. */
TENON_API tenon_status tenon_program_describe(tenon_program program, char** json);
/* [runtime] `kind` is a tenon_port_kind. */
TENON_API tenon_status tenon_program_port_count(tenon_program program, int32_t kind, size_t* count);
/* [runtime] */
TENON_API tenon_status tenon_program_port(tenon_program program, int32_t kind, size_t index,
                                          tenon_port* port);
/* [runtime] Replaces a weight by a copy of these elements for contexts created from now on. */
TENON_API tenon_status tenon_program_set_weight(tenon_program program, const char* name,
                                                const tenon_tensor* elements);
/* [runtime] */
TENON_API tenon_status tenon_program_free(tenon_program program);

/* ---- contexts --------------------------------------------------------------------------- */
/* [runtime] Creates the execution state of one caller. Options: threads (0: all available;
 * results do not depend on it). */
TENON_API tenon_status tenon_context_create(tenon_program program, const char* options,
                                            tenon_context* context);
/* [runtime] Runs on the caller's memory, without copies, and without allocations while shapes
 * stay the same. An output whose `data` is NULL receives memory of the context, valid until the
 * next run, and its shape. Other outputs must have the resulting shape and type, and must not
 * overlap any other tensor. */
TENON_API tenon_status tenon_context_run(tenon_context context, const tenon_tensor* inputs,
                                         size_t input_count, tenon_tensor* outputs,
                                         size_t output_count);
/* [runtime] Starts a run. For a GPU program it returns without waiting, so that one thread can
 * keep several contexts busy and copies overlap with computation; on a processor the run is
 * complete on return. Until tenon_context_finish returns, outputs are undefined, the context
 * rejects other calls, and inputs in pinned or GPU memory must not change; other inputs may be
 * freed. */
TENON_API tenon_status tenon_context_start(tenon_context context, const tenon_tensor* inputs,
                                           size_t input_count, tenon_tensor* outputs,
                                           size_t output_count);
/* [runtime] Waits for the started run and returns its status. */
TENON_API tenon_status tenon_context_finish(tenon_context context);
/* [runtime] Binds shapes without running; sets shape and dtype of the outputs unless they depend
 * on data. */
TENON_API tenon_status tenon_context_bind(tenon_context context, const tenon_tensor* inputs,
                                          size_t input_count, tenon_tensor* outputs,
                                          size_t output_count);
/* [runtime] Runs, and returns the duration of each step as JSON. */
TENON_API tenon_status tenon_context_watch(tenon_context context, const tenon_tensor* inputs,
                                           size_t input_count, tenon_tensor* outputs,
                                           size_t output_count, char** json);
/* [runtime] JSON: threads, bytes of the arena and of scratch. */
TENON_API tenon_status tenon_context_describe(tenon_context context, char** json);
/* [runtime] */
TENON_API tenon_status tenon_context_free(tenon_context context);

/* ---- states (since version 2) ------------------------------------------------------------------
 * A state is an input whose value in the next run is an output of this one, such as a cache. Each
 * context holds the values in its own memory on the program's device, at first the program's
 * initial values; a state without one is written first. */
/* [runtime] Copies the value before the next run to `elements`, whose type must be that of the
 * value; with null data, to memory of the context, valid until the state is read again. */
TENON_API tenon_status tenon_context_read_state(tenon_context context, const char* name,
                                                tenon_tensor* elements);
/* [runtime] Copies a value: the next run reads it. */
TENON_API tenon_status tenon_context_write_state(tenon_context context, const char* name,
                                                 const tenon_tensor* elements);
/* [runtime] Keeps a state in the caller's memory (of the GPU for a kernel-only program there) with
 * its contents, until the context is freed or the state is written with another shape. */
TENON_API tenon_status tenon_context_bind_state(tenon_context context, const char* name,
                                                const tenon_tensor* elements);
/* [runtime] Gives all states their initial values. */
TENON_API tenon_status tenon_context_reset_states(tenon_context context);
/* [runtime] Creates a context of the same program with the present values of the states: both share
 * the memory of a state until one of them writes it (copy on write). */
TENON_API tenon_status tenon_context_fork(tenon_context context, tenon_context* fork);

/* ---- values that need not be tensors of numbers ----------------------------------------- */
typedef enum tenon_value_kind {
  TENON_TENSOR = 1,
  TENON_SEQUENCE = 2,
  TENON_OPTIONAL = 3
} tenon_value_kind;

/* Copies the elements. */
TENON_API tenon_status tenon_value_tensor(const tenon_tensor* tensor, tenon_value* value);
/* Creates a tensor of texts; `lengths` has one entry per text, in bytes. */
TENON_API tenon_status tenon_value_strings(const char* const* texts, const size_t* lengths,
                                           const int64_t* shape, int32_t rank, tenon_value* value);
/* The caller still owns the items. `dtype` is the element type of tensors in an empty sequence. */
TENON_API tenon_status tenon_value_sequence(const tenon_value* items, size_t count, int32_t dtype,
                                            tenon_value* value);
/* With NULL, an empty optional. */
TENON_API tenon_status tenon_value_optional(tenon_value item, tenon_value* value);
/* Returns the kind; for a tensor its description, with memory owned by the value; for others the
 * number of items. */
TENON_API tenon_status tenon_value_look(tenon_value value, tenon_value_kind* kind,
                                        tenon_tensor* tensor, size_t* items);
TENON_API tenon_status tenon_value_item(tenon_value value, size_t index, tenon_value* item);
/* Returns one text of a tensor of strings; the value owns the bytes. */
TENON_API tenon_status tenon_value_string(tenon_value value, size_t index, const char** text,
                                          size_t* length);
TENON_API tenon_status tenon_value_free(tenon_value value);
/* Runs a program with ports of any type. The caller frees each output. */
TENON_API tenon_status tenon_context_run_values(tenon_context context, const tenon_value* inputs,
                                                size_t input_count, tenon_value* outputs,
                                                size_t output_count);

/* ---- training --------------------------------------------------------------------------- */
/* Compiles a training step. Options, named as in `tenon train`: loss, optimizer, schedule,
 * parameters, frozen (lists of patterns), batch, seed, threads. The states start from the
 * model's values. */
TENON_API tenon_status tenon_trainer_create(tenon_model model, const char* options,
                                            tenon_trainer* trainer);
/* JSON: inputs (the model's, and "target"), outputs ("loss" first), states; each with name and
 * type. */
TENON_API tenon_status tenon_trainer_describe(tenon_trainer trainer, char** json);
/* Runs one step. Outputs as for tenon_context_run. */
TENON_API tenon_status tenon_trainer_step(tenon_trainer trainer, const tenon_tensor* batch,
                                          size_t batch_count, tenon_tensor* outputs,
                                          size_t output_count);
/* Returns the current value of a state, in memory that is valid until the next step. */
TENON_API tenon_status tenon_trainer_state(tenon_trainer trainer, const char* name,
                                           tenon_tensor* elements);
TENON_API tenon_status tenon_trainer_set_state(tenon_trainer trainer, const char* name,
                                               const tenon_tensor* elements);
/* Returns the model with the trained parameters. */
TENON_API tenon_status tenon_trainer_model(tenon_trainer trainer, tenon_model* model);
/* Saves all states in one file in the safetensors format; restoring it continues training bit
 * for bit. */
TENON_API tenon_status tenon_trainer_save(tenon_trainer trainer, const char* folder);
TENON_API tenon_status tenon_trainer_restore(tenon_trainer trainer, const char* folder);
TENON_API tenon_status tenon_trainer_free(tenon_trainer trainer);

/* ---- the rest --------------------------------------------------------------------------- */
/* [runtime] JSON: a list of {"name", "kind", "text"}; the text of an unusable device is the
 * reason. */
TENON_API tenon_status tenon_devices(char** json);
/* Loads custom operators from a shared object (tenon/plugin.h) for models opened from now on. */
TENON_API tenon_status tenon_plugin_load(const char* path);
/* Runs `tenon WORD…` in this process and returns its exit code and output. Fails only if the
 * command cannot be called; a failing command reports it by its exit code. */
TENON_API tenon_status tenon_command(const char* const* words, size_t count, int* exit_code,
                                     char** output, char** messages);

#ifdef __cplusplus
}
#endif

#endif

/* Tenon's C interface: models and programs as handles, tensors as descriptions of the caller's
 * memory.
 *
 * Every function that can fail gives a tenon_status; what went wrong is then told by
 * tenon_last_error() in the calling thread. Nothing throws and nothing ends the process. A result
 * is written only where TENON_OK is given.
 *
 * A handle is a number in the shape of a pointer: one that was freed, or is of another kind, is
 * refused. Handles of models and programs may be used by any number of threads at once; a context
 * or a trainer by one at a time: a second one is refused. A program stays alive for as long as a
 * context of it does.
 *
 * Functions marked [runtime] are also in libtenon_runtime and in the shared objects that `tenon
 * compile -o MODEL.so` writes. Options are JSON objects as text; NULL stands for {}. An option that
 * does not exist is refused.
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

/* Grows when functions are added. What is there keeps its meaning: symbols have versions. */
#define TENON_ABI_VERSION 1

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

/* Elements of types below a byte take one byte each, f16, bf16 and f8 are their bits. */
typedef enum tenon_dtype {
  TENON_NO_DTYPE = 0, /* a port that is no tensor */
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

/* A tensor in the caller's memory. `data` is aligned as its elements are (f32: 4 bytes; 64 bytes
 * and more are fastest), and lies in host memory, row-major. A program for a GPU, all of whose
 * steps are kernels, also takes memory of that GPU, where work on its default stream is waited for;
 * it is used where it lies if 256 divides its address, and copied on the device if not. `strides`
 * counts elements; NULL stands for row-major. */
typedef struct tenon_tensor {
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t rank;
  int32_t dtype; /* tenon_dtype */
} tenon_tensor;

/* An input, an output or a weight of a program. Texts and shape belong to the program. */
typedef struct tenon_port {
  const char* name;
  const char* type;     /* "f32[N, 3, 224, 224]" */
  const int64_t* shape; /* -1: decided when it runs */
  int32_t rank;         /* -1: decided when it runs, or no tensor */
  int32_t dtype;        /* TENON_NO_DTYPE: no tensor */
} tenon_port;

typedef enum tenon_port_kind {
  TENON_INPUT = 0,
  TENON_OUTPUT = 1,
  TENON_WEIGHT = 2
} tenon_port_kind;

typedef struct tenon_model_handle* tenon_model;
typedef struct tenon_program_handle* tenon_program;
typedef struct tenon_context_handle* tenon_context;
typedef struct tenon_trainer_handle* tenon_trainer;
typedef struct tenon_value_handle* tenon_value;

/* ---- errors and texts -------------------------------------------------------------------------
 */

/* [runtime] "0.1" */
TENON_API const char* tenon_version(void);
/* [runtime] TENON_ABI_VERSION of the library, not of the header. */
TENON_API int tenon_abi_version(void);
/* [runtime] Of the last call that failed in this thread: the message, until the next one fails; ""
 * where none has. */
TENON_API const char* tenon_last_error(void);
/* [runtime] Gives a text back that a function made. NULL is fine. */
TENON_API void tenon_text_free(char* text);

/* ---- models -----------------------------------------------------------------------------------
 */

/* Reads a model of any format: a file, "zoo:resnet50?batch=N", "random:7". */
TENON_API tenon_status tenon_model_open(const char* source, tenon_model* model);
/* The same from memory, which may go afterwards. */
TENON_API tenon_status tenon_model_parse(const void* bytes, size_t size, tenon_model* model);
/* JSON: name, inputs, outputs, symbols, parameters, flops, operators. */
TENON_API tenon_status tenon_model_describe(tenon_model model, char** json);
/* Writes "onnx", "tenon", or another format that `tenon convert` names. */
TENON_API tenon_status tenon_model_save(tenon_model model, const char* format, const char* path);
/* The model after passes. Options: passes, without (lists of names), stop_after, set ({"fuse.mode":
 * "relay"}), shapes ({"x": [1, 3, 224, 224]}: symbols get these values). */
TENON_API tenon_status tenon_model_transform(tenon_model model, const char* options,
                                             tenon_model* result);
/* Compiles it. Options: target ("native", "x86-64-v3", "cuda:sm_90a"), precision ("f16", "bf16",
 * "tf32"), threads (that kernels are chosen for), winograd, tune_seconds, untuned, prefer (names of
 * candidates that are taken wherever they accept: ["wgmma"]), specialised_shapes
 * (["x:8x3x224x224"]), swappable_weights (true: every weight, or a list of names:
 * tenon_program_set_weight can replace them). */
TENON_API tenon_status tenon_model_compile(tenon_model model, const char* options,
                                           tenon_program* program);
TENON_API tenon_status tenon_model_free(tenon_model model);

/* ---- programs ---------------------------------------------------------------------------------
 */

/* [runtime] Reads a program that was compiled and saved. It is machine code: trust it as you would
 * an executable. */
TENON_API tenon_status tenon_program_load(const char* path, tenon_program* program);
/* [runtime] The same from memory, which is copied. */
TENON_API tenon_status tenon_program_parse(const void* bytes, size_t size, tenon_program* program);
/* [runtime] The program inside the shared object that this function lies in. */
TENON_API tenon_status tenon_program_self(tenon_program* program);
/* FILE.tnn, or FILE.so: a shared object with the [runtime] functions and the program. Options, of
 * FILE.so: constants ("FILE.bin": a file of their own, beside it). */
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
/* [runtime] Contexts that are made from now on compute with these elements, which are copied. */
TENON_API tenon_status tenon_program_set_weight(tenon_program program, const char* name,
                                                const tenon_tensor* elements);
/* [runtime] */
TENON_API tenon_status tenon_program_free(tenon_program program);

/* ---- contexts ---------------------------------------------------------------------------------
 */

/* [runtime] What one caller needs to run a program. Options: threads (0: as many as the process may
 * use; results do not depend on it). */
TENON_API tenon_status tenon_context_create(tenon_program program, const char* options,
                                            tenon_context* context);
/* [runtime] Runs on the caller's memory: nothing is copied, and nothing allocated while shapes stay
 * as they were. An output whose `data` is NULL gets memory of the context's, which stays until the
 * next run; its shape is set. Other outputs have to have the shape and type that come out, and must
 * not overlap anything else. */
TENON_API tenon_status tenon_context_run(tenon_context context, const tenon_tensor* inputs,
                                         size_t input_count, tenon_tensor* outputs,
                                         size_t output_count);
/* [runtime] Begins such a run and does not wait for it where the program is a GPU's (a processor is
 * done when it is back). So one thread keeps several contexts busy: one copies while another
 * computes. Until tenon_context_finish is back outputs are not there, the context refuses
 * everything else, and inputs in pinned memory or on the GPU have to stay as they are; others may
 * go. */
TENON_API tenon_status tenon_context_start(tenon_context context, const tenon_tensor* inputs,
                                           size_t input_count, tenon_tensor* outputs,
                                           size_t output_count);
/* [runtime] Waits for the run that was started; gives what it came to. */
TENON_API tenon_status tenon_context_finish(tenon_context context);
/* [runtime] Fixes shapes without running; sets shape and dtype of the outputs, where the shapes
 * alone decide them. */
TENON_API tenon_status tenon_context_bind(tenon_context context, const tenon_tensor* inputs,
                                          size_t input_count, tenon_tensor* outputs,
                                          size_t output_count);
/* [runtime] Runs, and tells in JSON what each step took. */
TENON_API tenon_status tenon_context_watch(tenon_context context, const tenon_tensor* inputs,
                                           size_t input_count, tenon_tensor* outputs,
                                           size_t output_count, char** json);
/* [runtime] JSON: threads, bytes of the arena and of scratch. */
TENON_API tenon_status tenon_context_describe(tenon_context context, char** json);
/* [runtime] */
TENON_API tenon_status tenon_context_free(tenon_context context);

/* ---- values that need not be tensors of numbers ------------------------------------------------
 */

typedef enum tenon_value_kind {
  TENON_TENSOR = 1,
  TENON_SEQUENCE = 2,
  TENON_OPTIONAL = 3
} tenon_value_kind;

/* Copies the elements. */
TENON_API tenon_status tenon_value_tensor(const tenon_tensor* tensor, tenon_value* value);
/* Texts by their bytes; `lengths` has one for each. */
TENON_API tenon_status tenon_value_strings(const char* const* texts, const size_t* lengths,
                                           const int64_t* shape, int32_t rank, tenon_value* value);
/* Items stay the caller's to free. `dtype` is that of tensors in an empty sequence. */
TENON_API tenon_status tenon_value_sequence(const tenon_value* items, size_t count, int32_t dtype,
                                            tenon_value* value);
/* With NULL, an optional that holds nothing. */
TENON_API tenon_status tenon_value_optional(tenon_value item, tenon_value* value);
/* Its kind; of a tensor its description, whose memory is the value's; of others how many items
 * there are. */
TENON_API tenon_status tenon_value_look(tenon_value value, tenon_value_kind* kind,
                                        tenon_tensor* tensor, size_t* items);
TENON_API tenon_status tenon_value_item(tenon_value value, size_t index, tenon_value* item);
/* One text of a tensor of strings: its bytes are the value's. */
TENON_API tenon_status tenon_value_string(tenon_value value, size_t index, const char** text,
                                          size_t* length);
TENON_API tenon_status tenon_value_free(tenon_value value);
/* Runs a program whose ports may be of any type. Each output is the caller's to free. */
TENON_API tenon_status tenon_context_run_values(tenon_context context, const tenon_value* inputs,
                                                size_t input_count, tenon_value* outputs,
                                                size_t output_count);

/* ---- training ---------------------------------------------------------------------------------
 */

/* A step of training, compiled. Options, in the words of `tenon train`: loss, optimizer, schedule,
 * parameters, frozen (lists of patterns), batch, seed, threads. Its states begin as the model says.
 */
TENON_API tenon_status tenon_trainer_create(tenon_model model, const char* options,
                                            tenon_trainer* trainer);
/* JSON: inputs (the model's, and "target"), outputs ("loss" first), states; each with name and
 * type. */
TENON_API tenon_status tenon_trainer_describe(tenon_trainer trainer, char** json);
/* One step. Outputs as for tenon_context_run. */
TENON_API tenon_status tenon_trainer_step(tenon_trainer trainer, const tenon_tensor* batch,
                                          size_t batch_count, tenon_tensor* outputs,
                                          size_t output_count);
/* A state as it is now, in memory that stays until the next step. */
TENON_API tenon_status tenon_trainer_state(tenon_trainer trainer, const char* name,
                                           tenon_tensor* elements);
TENON_API tenon_status tenon_trainer_set_state(tenon_trainer trainer, const char* name,
                                               const tenon_tensor* elements);
/* The model with what was learnt. */
TENON_API tenon_status tenon_trainer_model(tenon_trainer trainer, tenon_model* model);
/* All states in one file, in the safetensors format; read back, training goes on bit for bit. */
TENON_API tenon_status tenon_trainer_save(tenon_trainer trainer, const char* folder);
TENON_API tenon_status tenon_trainer_restore(tenon_trainer trainer, const char* folder);
TENON_API tenon_status tenon_trainer_free(tenon_trainer trainer);

/* ---- the rest ---------------------------------------------------------------------------------
 */

/* [runtime] JSON: a list of {"name", "kind", "text"}; a device that cannot be used says why. */
TENON_API tenon_status tenon_devices(char** json);
/* Loads operators from a shared object (tenon/plugin.h), for models that are read from now on. */
TENON_API tenon_status tenon_plugin_load(const char* path);
/* What `tenon WORD…` would do, in this process: its exit code, and what it prints. Fails only where
 * it could not be called; a command that fails tells so by its exit code. */
TENON_API tenon_status tenon_command(const char* const* words, size_t count, int* exit_code,
                                     char** output, char** messages);

#ifdef __cplusplus
}
#endif

#endif

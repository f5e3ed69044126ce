/* Custom operators: a shared object that exports tenon_plugin_v1(). `--plugin=FILE.so` or
 * tenon_plugin_load() loads it; afterwards ONNX nodes of that domain and name can be imported, and
 * run between compiled kernels. The code runs in the process: trust it like an executable.
 *
 * Functions may be called from any number of threads concurrently. They return NULL, or an error
 * text that stays valid until the thread's next call.
 */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include "tenon/tenon.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PLUGIN_AXES 16

/* The type of an operand or a result. */
typedef struct tenon_type {
  int32_t dtype; /* tenon_dtype */
  int32_t rank;  /* at most TENON_PLUGIN_AXES */
  int64_t shape[TENON_PLUGIN_AXES];
} tenon_type;

typedef struct tenon_custom_op {
  const char* domain; /* domain of the ONNX nodes */
  const char* name;
  /* Infers the types of the results from those of the operands. `attributes` is a JSON object. */
  const char* (*infer)(const char* attributes, const tenon_type* operands, size_t operand_count,
                       tenon_type* results, size_t result_count);
  /* Computes the results, which have the types that `infer` returned. */
  const char* (*compute)(const char* attributes, const tenon_tensor* operands, size_t operand_count,
                         const tenon_tensor* results, size_t result_count);
} tenon_custom_op;

typedef struct tenon_plugin {
  size_t op_count;
  const tenon_custom_op* ops;
} tenon_plugin;

/* The exported entry point of a plug-in. */
TENON_API const tenon_plugin* tenon_plugin_v1(void);

#ifdef __cplusplus
}
#endif

#endif

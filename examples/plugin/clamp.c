/* A custom operator: Clamp of the domain "example", the minimum of x and `most`.
 * cc -shared -fPIC clamp.c -o clamp.so; tenon run model.onnx --plugin=clamp.so */
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

static float most_of(const char* attributes) {
  const char* found = strstr(attributes, "\"most\":"); /* use a JSON library in real code */
  return found ? (float)atof(found + 7) : 1;
}

static const char* infer(const char* attributes, const tenon_type* x, size_t x_count, tenon_type* y, size_t y_count) {
  (void)attributes;
  if (x_count != 1 || y_count != 1 || x->dtype != TENON_F32) return "one operand of f32 and one result";
  *y = *x;
  return NULL;
}

static const char* compute(const char* attributes, const tenon_tensor* x, size_t x_count, const tenon_tensor* y,
                           size_t y_count) {
  (void)x_count;
  (void)y_count;
  const float most = most_of(attributes);
  int64_t count = 1;
  for (int k = 0; k < x->rank; ++k) count *= x->shape[k];
  for (int64_t k = 0; k < count; ++k) {
    const float value = ((const float*)x->data)[k];
    ((float*)y->data)[k] = value < most ? value : most;
  }
  return NULL;
}

static const tenon_custom_op ops[] = {{"example", "Clamp", infer, compute}};
static const tenon_plugin plugin = {1, ops};
const tenon_plugin* tenon_plugin_v1(void) { return &plugin; }

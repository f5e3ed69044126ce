/* Runs the network of `tenon compile zoo:mlp -o mlp.so`; builds with cc main.c ./mlp.so -o main. */
#include <stdio.h>
#include <tenon/tenon.h>

static int check(tenon_status status) {
  if (status != TENON_OK) fprintf(stderr, "error: %s\n", tenon_last_error());
  return status != TENON_OK;
}

int main(void) {
  tenon_program program;
  tenon_context context;
  if (check(tenon_program_self(&program))) return 1;
  if (check(tenon_context_create(program, "{\"threads\": 1}", &context))) return 1;

  static float x[784], y[10];
  for (int k = 0; k < 784; ++k) x[k] = (float)(k % 7) - 3;
  int64_t x_shape[] = {1, 784}, y_shape[] = {1, 10};
  tenon_tensor input = {x, x_shape, NULL, 2, TENON_F32};
  tenon_tensor output = {y, y_shape, NULL, 2, TENON_F32};
  if (check(tenon_context_run(context, &input, 1, &output, 1))) return 1;

  for (int k = 0; k < 10; ++k) printf("%.6g\n", y[k]);
  tenon_context_free(context);
  tenon_program_free(program);
  return 0;
}

/* Two fields with a halo, and a five-point stencil on the domain. */
// [program]
#include <gridbuf.h>
#include <stdio.h>
#include <stdlib.h>

static void check(gridbuf_status status) {
  if (status == GRIDBUF_OK) return;
  fprintf(stderr, "%s\n", gridbuf_last_error());
  exit(1);
}

int main(void) {
  const int64_t shape[2] = {8, 7}, halo[4] = {1, 1, 1, 1};
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  options.ndim = 2;
  options.shape = shape;
  options.halo = halo;
  options.backend = "gt:cpu_ifirst";
  gridbuf_storage *field, *result;
  check(gridbuf_storage_create(&options, &field));
  check(gridbuf_storage_create(&options, &result));
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  check(gridbuf_storage_info(field, GRIDBUF_HOST, &info));
  void *from, *to;
  check(gridbuf_storage_access(field, GRIDBUF_HOST, GRIDBUF_WRITE, &from));
  check(gridbuf_storage_access(result, GRIDBUF_HOST, GRIDBUF_WRITE, &to));
  double *f = from, *r = to, sum = 0;
  const int64_t i_step = info.strides_bytes[0] / 8, j_step = info.strides_bytes[1] / 8;
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 7; ++j) f[i * i_step + j * j_step] = (double)(i * i + j * j);
  }
  for (int64_t i = 1; i < 7; ++i) {
    for (int64_t j = 1; j < 6; ++j) {
      const double* at = f + i * i_step + j * j_step;
      r[i * i_step + j * j_step] = at[-i_step] + at[i_step] + at[-j_step] + at[j_step] - 4 * *at;
      sum += r[i * i_step + j * j_step];
    }
  }
  printf("sum of the Laplacian: %.1f\n", sum);
  check(gridbuf_storage_release(field));
  check(gridbuf_storage_release(result));
  return 0;
}
// [/program]

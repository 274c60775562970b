/* Training steps written by hand: what one core reaches in strict arithmetic, without a compiler
   that knows the network. One network of three layers per build:

     gcc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC \
         -DIN=4 -DH1=64 -DH2=64 -DOUT=2 -DBATCH=32 -o floor.so floor.c -lm

   H1 and H2 are multiples of 16. Parameters lie in one vector: weight (inputs, outputs) and bias of
   each layer. The last layer is padded to 16 columns in work memory. */
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(64), aligned(4)));
typedef int mask __attribute__((vector_size(64)));
#define LANES 16
#define PAD 16
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define PARAMETERS (IN * H1 + H1 + H1 * H2 + H2 + H2 * OUT + OUT)
#define AT(pointer) (*(vec *)(pointer))

enum { W1 = 0, B1 = IN * H1, W2 = B1 + H1, B2 = W2 + H1 * H2, W3 = B2 + H2, B3 = W3 + H2 * OUT };

static float padded_weight[H2 * PAD], padded_bias[PAD], gradient[PARAMETERS];
static float first[BATCH * H1], second[BATCH * H2], values[BATCH * PAD];
static float slope_values[BATCH * PAD], slope_second[BATCH * H2], slope_first[BATCH * H1];
static float turned_weight[H2 * H1], turned_last[PAD * H2], gradient_last[H2 * PAD];

/* ROWS x (16 * COLUMNS) numbers of a product. Element (i, k) of the left factor is at
   left[i * row + k * column]; the right factor and the result have `width` columns. What is given
   as `shown` is the layer's output of the right size: where it is not positive the result is 0. */
INLINE void tile(const int ROWS, const int COLUMNS, int depth, int width, const float *left,
                 long row, long column, const float *right, const float *bias, int relu,
                 const float *shown, float *result) {
  vec sum[8][4];
  UNROLL for (int r = 0; r < ROWS; r++)
    UNROLL for (int c = 0; c < COLUMNS; c++)
      sum[r][c] = bias ? AT(bias + LANES * c) : (vec){0};
  for (int k = 0; k < depth; k++) {
    vec factor[4];
    UNROLL for (int c = 0; c < COLUMNS; c++) factor[c] = AT(right + (long)k * width + LANES * c);
    UNROLL for (int r = 0; r < ROWS; r++)
      UNROLL for (int c = 0; c < COLUMNS; c++)
        sum[r][c] += left[r * row + k * column] * factor[c];
  }
  UNROLL for (int r = 0; r < ROWS; r++)
    UNROLL for (int c = 0; c < COLUMNS; c++) {
      vec s = sum[r][c];
      if (relu) s = (vec)((mask)s & (s > (vec){0}));
      if (shown) s = (vec)((mask)s & (AT(shown + (long)r * width + LANES * c) > (vec){0}));
      AT(result + (long)r * width + LANES * c) = s;
    }
}

#define COLUMN_OF_TILES(ROWS, COLUMNS)                                                            \
  for (; i + ROWS <= rows; i += ROWS)                                                             \
    tile(ROWS, COLUMNS, depth, width, left + i * row, row, column, right + j,                     \
         bias ? bias + j : 0, relu, shown ? shown + (long)i * width + j : 0,                      \
         result + (long)i * width + j);

INLINE void product(int rows, int depth, int width, const float *left, long row, long column,
                    const float *right, const float *bias, int relu, const float *shown,
                    float *result) {
  int j = 0;
  for (; j + 4 * LANES <= width; j += 4 * LANES) {
    int i = 0;
    COLUMN_OF_TILES(6, 4) COLUMN_OF_TILES(4, 4) COLUMN_OF_TILES(2, 4) COLUMN_OF_TILES(1, 4)
  }
  for (; j + LANES <= width; j += LANES) {
    int i = 0;
    COLUMN_OF_TILES(8, 1) COLUMN_OF_TILES(4, 1) COLUMN_OF_TILES(1, 1)
  }
}

static void sum_rows(int rows, int columns, int width, const float *from, float *to) {
  int j = 0;
  for (; j + LANES <= columns; j += LANES) {
    vec sum = {0};
    for (int i = 0; i < rows; i++) sum += AT(from + (long)i * width + j);
    AT(to + j) = sum;
  }
  for (; j < columns; j++) {
    to[j] = 0;
    for (int i = 0; i < rows; i++) to[j] += from[(long)i * width + j];
  }
}

static void forward(const float *p, const float *x) {
  for (int k = 0; k < H2; k++)
    for (int o = 0; o < OUT; o++) padded_weight[k * PAD + o] = p[W3 + k * OUT + o];
  for (int o = 0; o < OUT; o++) padded_bias[o] = p[B3 + o];
  product(BATCH, IN, H1, x, IN, 1, p + W1, p + B1, 1, 0, first);
  product(BATCH, H1, H2, first, H1, 1, p + W2, p + B2, 1, 0, second);
  product(BATCH, H2, PAD, second, H2, 1, padded_weight, padded_bias, 0, 0, values);
}

/* From the slope of the outputs, in slope_values, to the gradient of all parameters. */
static void backward(const float *p, const float *x) {
  product(H2, BATCH, PAD, second, 1, H2, slope_values, 0, 0, 0, gradient_last);
  for (int i = 0; i < H2; i++)
    for (int o = 0; o < OUT; o++) {
      gradient[W3 + i * OUT + o] = gradient_last[i * PAD + o];
      turned_last[o * H2 + i] = p[W3 + i * OUT + o];
    }
  sum_rows(BATCH, OUT, PAD, slope_values, gradient + B3);
  product(BATCH, OUT, H2, slope_values, PAD, 1, turned_last, 0, 0, second, slope_second);
  product(H1, BATCH, H2, first, 1, H1, slope_second, 0, 0, 0, gradient + W2);
  sum_rows(BATCH, H2, H2, slope_second, gradient + B2);
  for (int i = 0; i < H1; i += LANES)
    for (int o = 0; o < H2; o++)
      for (int u = 0; u < LANES; u++)
        turned_weight[(long)o * H1 + i + u] = p[W2 + (long)(i + u) * H2 + o];
  product(BATCH, H2, H1, slope_second, H2, 1, turned_weight, 0, 0, first, slope_first);
  product(IN, BATCH, H1, x, 1, IN, slope_first, 0, 0, 0, gradient + W1);
  sum_rows(BATCH, H1, H1, slope_first, gradient + B1);
}

static void adam(float *restrict p, float *restrict mean, float *restrict square, long number) {
  const float rate = 1e-4 / (1 - pow(0.9, number)), scale = 1 / sqrt(1 - pow(0.999, number));
  for (int i = 0; i < PARAMETERS; i++) {
    float g = gradient[i];
    mean[i] = 0.9f * mean[i] + 0.1f * g;
    square[i] = 0.999f * square[i] + 0.001f * (g * g);
    p[i] -= rate * (mean[i] / (sqrtf(square[i]) * scale + 1e-8f));
  }
}

/* `steps` DQN updates; batches, stacked one behind the other, in turn. `done` counts updates. */
void dqn(float *p, float *mean, float *square, const float *target, long done, long steps,
         long batches, const float *observations, const long *actions, const float *rewards,
         const float *followings, const float *ends, float *losses) {
  for (long step = 0; step < steps; step++) {
    const long b = step % batches;
    const float *x = observations + b * BATCH * IN;
    float wanted[BATCH], loss = 0;
    forward(target, followings + b * BATCH * IN);
    for (int i = 0; i < BATCH; i++) {
      float best = values[i * PAD];
      for (int o = 1; o < OUT; o++)
        best = values[i * PAD + o] > best ? values[i * PAD + o] : best;
      wanted[i] = rewards[b * BATCH + i] + 0.99f * (1 - ends[b * BATCH + i]) * best;
    }
    forward(p, x);
    memset(slope_values, 0, sizeof slope_values);
    for (int i = 0; i < BATCH; i++) {
      long chosen = i * PAD + actions[b * BATCH + i];
      float error = values[chosen] - wanted[i];
      float bounded = error > 1 ? 1 : error < -1 ? -1 : error;
      loss += bounded * (error - 0.5f * bounded);
      slope_values[chosen] = bounded / BATCH;
    }
    backward(p, x);
    adam(p, mean, square, done + step + 1);
    losses[step] = loss / BATCH;
  }
}

/* `steps` steps of gradient descent on 3 weights. `rows` is a multiple of 16; `counts` is 0 for
   the rows that only fill up. */
void logistic(float *w, const float *columns, const float *labels, const float *counts, long rows,
              float rate, long steps) {
  const float *x0 = columns, *x1 = columns + rows, *x2 = columns + 2 * rows;
  float error[rows];
  for (long step = 0; step < steps; step++) {
    vec g0 = {0}, g1 = {0}, g2 = {0};
    for (long i = 0; i < rows; i++)
      error[i] = counts[i] *
                 (1 / (1 + expf(-(x0[i] * w[0] + x1[i] * w[1] + x2[i] * w[2]))) - labels[i]);
    for (long i = 0; i < rows; i += LANES) {
      g0 += AT(error + i) * AT(x0 + i);
      g1 += AT(error + i) * AT(x1 + i);
      g2 += AT(error + i) * AT(x2 + i);
    }
    float s0 = 0, s1 = 0, s2 = 0;
    for (int u = 0; u < LANES; u++) s0 += g0[u], s1 += g1[u], s2 += g2[u];
    w[0] -= rate * s0, w[1] -= rate * s1, w[2] -= rate * s2;
  }
}

/* out = x @ weight + bias for one row; `out` has room for a multiple of 16 numbers. */
INLINE void row_times(int inputs, int outputs, const float *x, const float *weight,
                      const float *bias, int relu, float *out) {
  for (int j = 0; j < outputs; j++) out[j] = bias[j];
  for (int k = 0; k < inputs; k++)
    for (int j = 0; j < outputs; j++) out[j] += x[k] * weight[k * outputs + j];
  if (relu)
    for (int j = 0; j < outputs; j++) out[j] = out[j] > 0 ? out[j] : 0;
}

static int act(const float *p, const float *x) {
  float h[H1], g[H2], value[OUT];
  row_times(IN, H1, x, p + W1, p + B1, 1, h);
  row_times(H1, H2, h, p + W2, p + B2, 1, g);
  row_times(H2, OUT, g, p + W3, p + B3, 0, value);
  int best = 0;
  for (int o = 1; o < OUT; o++) best = value[o] > value[best] ? o : best;
  return best;
}

/* Greedy actions for `count` observations, one at a time, `passes` times over. */
void actions(const float *p, const float *observations, long count, long passes, long *chosen) {
  for (long pass = 0; pass < passes; pass++)
    for (long i = 0; i < count; i++) chosen[i] = act(p, observations + i * IN);
}

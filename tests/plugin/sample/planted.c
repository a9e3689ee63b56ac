/* A small library with a bug in every function, and beside each its correct twin. Plainly all of them seem to work. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static volatile double sink; /* so that no read is optimised away */
static double scratch[1 << 16];

/* Writes one past the end. */
void ramp_wrong(double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i <= n; i++) x[i] = (double)i; }
void ramp_right(double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) x[i] = (double)i; }

/* Reads one past the end. */
double top_wrong(const double *x, ptrdiff_t n) {
    double top = x[0];
    for (ptrdiff_t i = 1; i <= n; i++) { sink = x[i]; if (i < n && x[i] > top) top = x[i]; }
    return top;
}
double top_right(const double *x, ptrdiff_t n) {
    double top = x[0];
    for (ptrdiff_t i = 1; i < n; i++) if (x[i] > top) top = x[i];
    return top;
}

/* Bins count from one: an item of bin zero is written before the beginning. */
void count_wrong(int64_t *counts, const int64_t *bins, const int64_t *weights, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) counts[bins[i] - 1] += weights[i];
}
void count_right(int64_t *counts, const int64_t *bins, const int64_t *weights, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) if (bins[i] > 0) counts[bins[i] - 1] += weights[i];
}

/* Compares the first item with the one before it. */
ptrdiff_t rises_wrong(const double *x, ptrdiff_t n) {
    ptrdiff_t rises = 0;
    for (ptrdiff_t i = 0; i < n; i++) { sink = x[i - 1]; rises += i && x[i] > x[i - 1]; }
    return rises;
}
ptrdiff_t rises_right(const double *x, ptrdiff_t n) {
    ptrdiff_t rises = 0;
    for (ptrdiff_t i = 1; i < n; i++) rises += x[i] > x[i - 1];
    return rises;
}

/* Takes the neighbour below, which the last row has not. */
double below_wrong(const double *x, ptrdiff_t rows, ptrdiff_t columns) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) { sink = x[(i + 1) * columns + j]; if (i + 1 < rows) sum += sink; }
    return sum;
}
double below_right(const double *x, ptrdiff_t rows, ptrdiff_t columns) {
    double sum = 0;
    for (ptrdiff_t i = 0; i + 1 < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) sum += x[(i + 1) * columns + j];
    return sum;
}

/* Takes single precision for double. */
ptrdiff_t finite_wrong(const float *x, ptrdiff_t n) {
    const double *wide = (const double *)x;
    for (ptrdiff_t i = 0; i < n; i++) sink = wide[i];
    return n;
}
ptrdiff_t finite_right(const float *x, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) sink = x[i];
    return n;
}

/* Keeps a pointer longer than its array lives, or than it stays where it is. */
static const double *kept;
void keep(const double *x) { kept = x; }
int look_back(void) { sink = kept[0]; return 1; }

/* Counts bytes where it has items of two: copies double the length. */
double copied_wrong(const int16_t *x, ptrdiff_t n) {
    memcpy(scratch, x, (size_t)n * 2 * sizeof *x);
    return ((int16_t *)scratch)[0];
}
double copied_right(const int16_t *x, ptrdiff_t n) {
    memcpy(scratch, x, (size_t)n * sizeof *x);
    return ((int16_t *)scratch)[0];
}

/* Takes every view for contiguous. */
ptrdiff_t seen_wrong(const double *x, ptrdiff_t n, ptrdiff_t stride) {
    (void)stride;
    for (ptrdiff_t i = 0; i < n; i++) sink = x[i];
    return n;
}
ptrdiff_t seen_right(const double *x, ptrdiff_t n, ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < n; i++) sink = *(const double *)((const char *)x + i * stride);
    return n;
}

/* Adds to what it should have set. */
void doubled_wrong(double *out, const double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) out[i] += 2 * x[i]; }
void doubled_right(double *out, const double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) out[i] = 2 * x[i]; }

/* Leaves the borders of its output as they are. */
void slopes_wrong(double *out, const double *x, ptrdiff_t n) {
    for (ptrdiff_t i = 1; i + 1 < n; i++) out[i] = x[i + 1] - x[i - 1];
}
void slopes_right(double *out, const double *x, ptrdiff_t n) {
    out[0] = out[n - 1] = 0;
    slopes_wrong(out, x, n);
}

/* Looks for an end that full fields do not have. */
ptrdiff_t length_wrong(const char *text, ptrdiff_t n) { ptrdiff_t all = (ptrdiff_t)strlen(text); return all < n ? all : n; }
ptrdiff_t length_right(const char *text, ptrdiff_t n) { return (ptrdiff_t)strnlen(text, (size_t)n); }

/* Ends a text inside a field that has no room for it: one byte too far. */
void label_wrong(char *text, ptrdiff_t n) { memset(text, 'x', (size_t)n); text[n] = 0; }
void label_right(char *text, ptrdiff_t n) { memset(text, 'x', (size_t)n); text[n - 1] = 0; }

/* Looks for a value that need not be there. */
ptrdiff_t find_wrong(const uint8_t *x, ptrdiff_t n, uint8_t value) {
    ptrdiff_t at = 0;
    while (x[at] != value && at < 2 * n) at++;
    return at < n ? at : -1;
}
ptrdiff_t find_right(const uint8_t *x, ptrdiff_t n, uint8_t value) {
    for (ptrdiff_t at = 0; at < n; at++) if (x[at] == value) return at;
    return -1;
}

/* Says how many outliers there are in what it was told to look at; the caller sets the limits, or forgets to. */
ptrdiff_t outliers(const double *x, const double *limits, ptrdiff_t n) {
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) found += x[i] < limits[i];
    return found;
}

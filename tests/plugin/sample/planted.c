/* A small library with a bug in every function, and beside each its correct twin. Plainly all of them seem to work. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static volatile double sink; /* so that no read is optimised away */

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

/* Keeps a pointer longer than its array lives, or than it stays where it is. */
static const double *kept;
void keep(const double *x) { kept = x; }
int look_back(void) { sink = kept[0]; return 1; }

/* Adds to what it should have set. */
void doubled_wrong(double *out, const double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) out[i] += 2 * x[i]; }
void doubled_right(double *out, const double *x, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) out[i] = 2 * x[i]; }

/* Ends a text inside a field that has no room for it: one byte too far. */
void label_wrong(char *text, ptrdiff_t n) { memset(text, 'x', (size_t)n); text[n] = 0; }
void label_right(char *text, ptrdiff_t n) { memset(text, 'x', (size_t)n); text[n - 1] = 0; }

/* Says how many outliers there are in what it was told to look at; the caller sets the limits, or forgets to. */
ptrdiff_t outliers(const double *x, const double *limits, ptrdiff_t n) {
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) found += x[i] < limits[i];
    return found;
}

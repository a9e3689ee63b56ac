/* Diffusion on a grid of 1,000 x 1,000; each step allocates its derivative and its next state. */
#include "rest.h"

#define N 1000

static double *laplacian(const double *u)
{
    double *d = calloc((size_t)N * N, sizeof *d);
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++) {
            size_t k = (size_t)i * N + j;
            d[k] = u[k - N] + u[k + N] + u[k - 1] + u[k + 1] - 4 * u[k];
        }
    return d;
}

int main(void)
{
    double *u = malloc(sizeof *u * N * N);
    for (size_t k = 0; k < (size_t)N * N; k++)
        u[k] = (double)(k * 7919 % 1000) / 1000;
    for (int step = 0; step < 120; step++) {
        double *d = laplacian(u), *next = malloc(sizeof *next * N * N);
        for (size_t k = 0; k < (size_t)N * N; k++)
            next[k] = u[k] + 0.2 * d[k];
        free(d);
        free(u);
        u = next;
    }
    double sum = 0;
    for (size_t k = 0; k < (size_t)N * N; k++)
        sum += u[k];
    printf("%.6f\n", sum);
    free(u);
    rest();
}

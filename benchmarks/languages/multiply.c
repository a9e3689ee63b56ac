/* A chain of products of matrices between 300 and 700 wide; each product has fresh storage and a packed copy. */
#include <string.h>

#include "rest.h"

static double *transposed(const double *a, int rows, int columns)
{
    double *t = malloc(sizeof *t * rows * columns);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            t[(size_t)j * rows + i] = a[(size_t)i * columns + j];
    return t;
}

static double *product(const double *a, const double *b, int n, int m, int k)
{
    double *t = transposed(b, m, k), *c = malloc(sizeof *c * n * k);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum[4] = {0};
            const double *x = a + (size_t)i * m, *y = t + (size_t)j * m;
            for (int l = 0; l + 4 <= m; l += 4)
                for (int s = 0; s < 4; s++)
                    sum[s] += x[l + s] * y[l + s];
            c[(size_t)i * k + j] = (sum[0] + sum[1] + sum[2] + sum[3]) / m;
        }
    free(t);
    return c;
}

static double *filled(int rows, int columns)
{
    double *a = malloc(sizeof *a * rows * columns);
    for (int i = 0; i < rows * columns; i++)
        a[i] = (double)(i * 31L % 101) / 101;
    return a;
}

int main(void)
{
    int width = 400;
    double *a = filled(400, width);
    for (int step = 0; step < 12; step++) {
        int next = 300 + step * 100 % 401;
        double *b = filled(width, next), *c = product(a, b, 400, width, next);
        free(a);
        free(b);
        a = c;
        width = next;
    }
    printf("%.9f\n", a[0] + a[400 * width - 1]);
    free(a);
    rest();
}

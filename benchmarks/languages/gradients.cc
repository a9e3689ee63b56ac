// Conjugate gradients for a Poisson problem on 700 x 700, with vectors returned by value.
#include <cmath>
#include <cstdio>
#include <vector>

#include "rest.h"

using Vector = std::vector<double>;
static const int n = 700;

static Vector apply(const Vector &x)
{
    Vector y(x.size());
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            std::size_t k = std::size_t(i) * n + j;
            double sum = 4 * x[k];
            if (i > 0) sum -= x[k - n];
            if (i < n - 1) sum -= x[k + n];
            if (j > 0) sum -= x[k - 1];
            if (j < n - 1) sum -= x[k + 1];
            y[k] = sum;
        }
    return y;
}

static Vector plus(const Vector &x, double factor, const Vector &y)
{
    Vector sum(x);
    for (std::size_t k = 0; k < x.size(); k++)
        sum[k] += factor * y[k];
    return sum;
}

static double dot(const Vector &x, const Vector &y)
{
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); k++)
        sum += x[k] * y[k];
    return sum;
}

int main()
{
    {
        Vector x(std::size_t(n) * n), r(std::size_t(n) * n, 1.0), p = r;
        double rr = dot(r, r);
        for (int step = 0; step < 120; step++) {
            Vector ap = apply(p);
            double alpha = rr / dot(p, ap);
            x = plus(x, alpha, p);
            r = plus(r, -alpha, ap);
            double next = dot(r, r);
            p = plus(r, next / rr, p);
            rr = next;
        }
        std::printf("%.6e\n", std::sqrt(rr) + x[n]);
    }
    rest();
}

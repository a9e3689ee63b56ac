// Two threads smooth signals of their own at once; the first thread waits. Each step makes its temporaries anew.
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "rest.h"

using Signal = std::vector<double>;

static Signal slope(const Signal &of)
{
    Signal to(of.size());
    for (std::size_t i = 1; i + 1 < of.size(); i++)
        to[i] = of[i + 1] - of[i - 1];
    return to;
}

static Signal limited(const Signal &of)
{
    Signal to(of.size());
    for (std::size_t i = 0; i < of.size(); i++)
        to[i] = of[i] / std::sqrt(1 + of[i] * of[i]);
    return to;
}

static void smooth(std::size_t size, double *sum)
{
    Signal signal(size);
    for (std::size_t i = 0; i < size; i++)
        signal[i] = double(i * 7919 % 1000) / 1000;
    for (int step = 0; step < 60; step++) {
        Signal flux = limited(slope(signal)), change = slope(flux), next(size);
        for (std::size_t i = 0; i < size; i++)
            next[i] = signal[i] + 0.1 * change[i];
        signal.swap(next);
    }
    for (double value : signal)
        *sum += value;
}

int main()
{
    double sums[2] = {0, 0};
    {
        std::thread one(smooth, 400000, &sums[0]), other(smooth, 500000, &sums[1]);
        one.join(), other.join();
    }
    std::printf("%.6f %.6f\n", sums[0], sums[1]);
    rest();
}

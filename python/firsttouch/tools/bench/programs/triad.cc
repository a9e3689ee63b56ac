// a = b + c * d, as students ran it in C: on arrays that were only allocated, and on the same arrays after zeros were
// written into them. Prints the seconds of the fastest turn of each.
//
// Arguments: how the arrays are allocated (new, malloc or calloc), bytes of each.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static double *make(const char *maker, std::size_t items) {
    if (std::strcmp(maker, "new") == 0) return new double[items];
    const std::size_t size = items * sizeof(double);
    return static_cast<double *>(maker[0] == 'm' ? std::malloc(size) : std::calloc(items, sizeof(double)));
}

static double best(double *a, const double *b, const double *c, const double *d, std::size_t items) {
    double fastest = 1e9;
    for (int turn = 0; turn < 6; turn++) { // the first makes a real
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < items; i++) a[i] = b[i] + c[i] * d[i];
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (turn > 0 && took.count() < fastest) fastest = took.count();
        asm volatile("" : : "r"(a) : "memory"); // the compiler takes a as read
    }
    return fastest;
}

int main(int, char **words) {
    const std::size_t items = std::strtoull(words[2], nullptr, 10) / sizeof(double);
    double *arrays[4];
    for (double *&array : arrays)
        if ((array = make(words[1], items)) == nullptr) return 1;
    const double never = best(arrays[0], arrays[1], arrays[2], arrays[3], items);
    for (double *array : arrays) std::memset(array, 0, items * sizeof(double));
    std::printf("%.9g %.9g\n", never, best(arrays[0], arrays[1], arrays[2], arrays[3], items));
}

// Allocates memory and touches a byte of each page, as in the study of `new char[s]`: the first time in a fresh process,
// and then again and again, each time after a free. Prints the seconds of the first and of the fastest later turn.
//
// Arguments: how it is allocated (new, malloc or calloc), bytes.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static char *make(const char *maker, std::size_t size) {
    if (std::strcmp(maker, "new") == 0) return new char[size];
    return static_cast<char *>(maker[0] == 'm' ? std::malloc(size) : std::calloc(size, 1));
}

int main(int, char **words) {
    const std::size_t size = std::strtoull(words[2], nullptr, 10), page = 4096;
    const bool by_new = std::strcmp(words[1], "new") == 0;
    double first = 0, again = 1e9;
    for (int turn = 0; turn < 6; turn++) {
        const auto start = std::chrono::steady_clock::now();
        char *volatile block = make(words[1], size); // volatile: the compiler could leave the block out
        if (block == nullptr) return 1;
        for (std::size_t at = 0; at < size; at += page) block[at] = 1;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (turn == 0) first = took.count();
        else if (took.count() < again) again = took.count();
        if (by_new) delete[] block;
        else std::free(block);
    }
    std::printf("%.9g %.9g\n", first, again);
}

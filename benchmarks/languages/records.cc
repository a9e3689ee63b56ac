// Reads records from text, sorts them by key in columns, joins them and writes text again.
#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "rest.h"

static std::string text(unsigned seed, int rows)
{
    std::string out;
    for (int i = 0; i < rows; i++) {
        seed = seed * 1103515245u + 12345u;
        out += std::to_string(seed >> 12) + ';' + std::to_string(i % 977) + '\n';
    }
    return out;
}

struct Table {
    std::vector<long> key, value;
};

static Table parsed(const std::string &from)
{
    Table table;
    for (const char *at = from.data(), *end = at + from.size(); at < end; at++) {
        char *next;
        table.key.push_back(std::strtol(at, &next, 10));
        table.value.push_back(std::strtol(next + 1, &next, 10));
        at = next;
    }
    return table;
}

static Table sorted(const Table &from)
{
    std::vector<std::size_t> order(from.key.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return from.key[a] < from.key[b]; });
    Table to;
    for (std::size_t i : order) {
        to.key.push_back(from.key[i]);
        to.value.push_back(from.value[i]);
    }
    return to;
}

int main()
{
    std::size_t written = 0;
    long sum = 0;
    for (unsigned turn = 0; turn < 4; turn++) {
        Table table = sorted(parsed(text(turn + 1, 300000)));
        std::vector<long> totals(977);
        for (std::size_t i = 0; i < table.key.size(); i++)
            totals[table.value[i]] += table.key[i];
        sum += totals[turn];
        std::string out;
        for (std::size_t i = 0; i < table.key.size(); i++)
            out += std::to_string(table.key[i]) + ',' + std::to_string(totals[table.value[i]]) + '\n';
        written += out.size();
    }
    std::printf("%zu %ld\n", written, sum);
    rest();
}

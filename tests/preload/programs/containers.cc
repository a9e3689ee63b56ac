// Containers and regular expressions: long to compile, and buffers that grow when it runs.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

int main() {
    std::vector<std::string> words;
    for (int i = 0; i < 100000; i++) words.push_back(std::to_string(i));
    std::sort(words.begin(), words.end());
    std::map<std::string, int> seen;
    for (auto &word : words) seen[std::regex_replace(word, std::regex("9"), "")]++;
    std::vector<double> grows;
    for (int i = 0; i < 3000000; i++) grows.push_back(i);
    std::cout << words[500] << ' ' << seen.size() << ' ' << grows.back() << '\n';
}

// A pipeline of filters over pictures of four sizes; each stage returns a new picture.
#include <cmath>
#include <cstdio>
#include <vector>

#include "rest.h"

struct Picture {
    int width, height;
    std::vector<float> values;
    Picture(int w, int h) : width(w), height(h), values(std::size_t(w) * h) {}
    float at(int x, int y) const { return values[std::size_t(y) * width + x]; }
};

static Picture blurred(const Picture &from, bool across)
{
    Picture to(from.width, from.height);
    int dx = across, dy = !across;
    for (int y = 2 * dy; y < from.height - 2 * dy; y++)
        for (int x = 2 * dx; x < from.width - 2 * dx; x++)
            to.values[std::size_t(y) * to.width + x] = (from.at(x - 2 * dx, y - 2 * dy) + 4 * from.at(x - dx, y - dy)
                + 6 * from.at(x, y) + 4 * from.at(x + dx, y + dy) + from.at(x + 2 * dx, y + 2 * dy)) / 16;
    return to;
}

static Picture halved(const Picture &from)
{
    Picture to(from.width / 2, from.height / 2);
    for (int y = 0; y < to.height; y++)
        for (int x = 0; x < to.width; x++)
            to.values[std::size_t(y) * to.width + x] = from.at(2 * x, 2 * y);
    return to;
}

static double edges(const Picture &of)
{
    Picture strength(of.width, of.height);
    double sum = 0;
    for (int y = 1; y < of.height - 1; y++)
        for (int x = 1; x < of.width - 1; x++) {
            float a = of.at(x + 1, y) - of.at(x - 1, y), b = of.at(x, y + 1) - of.at(x, y - 1);
            strength.values[std::size_t(y) * of.width + x] = std::sqrt(a * a + b * b);
        }
    for (float value : strength.values)
        sum += value;
    return sum;
}

int main()
{
    double sum = 0;
    for (int turn = 0; turn < 24; turn++) {
        Picture picture(1280 - 16 * (turn % 5), 960);
        for (std::size_t i = 0; i < picture.values.size(); i++)
            picture.values[i] = float((i * 7919 + turn) % 256) / 256;
        for (int level = 0; level < 4; level++) {
            picture = blurred(blurred(picture, true), false);
            sum += edges(picture);
            picture = halved(picture);
        }
    }
    std::printf("%.3f\n", sum);
    rest();
}

#!/usr/bin/env python3
"""Draws the twelve shapes of shapes12.json: bench/shapes12.py > bench/shapes12.json

The plan's choice of a kernel was made on the layers of workloads.json; these shapes are none of them. A shape is drawn from a fixed seed:
  experts  12 to 300, tokens 700 to 20,000, out_features (N) and in_features (K) 512 to 6,000, each even on a logarithmic scale
  top_k    1 to 8, even
  N and K  multiples of 8 and not of 64
A shape whose product takes more than 2e12 operations or whose weights take more than 4 GB is drawn again, so that the twelve together take seconds.
check_test.py holds the file to this rule.
"""
import json
import math

SEED = 20261129
MASK = (1 << 64) - 1


class Draws:
    """SplitMix64 (Steele, Lea and Flood, 2014): the same numbers with any version of Python."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        """In [0, 1), 53 bits."""
        self.state = (self.state + 0x9e3779b97f4a7c15) & MASK
        x = self.state
        x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
        x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
        return ((x ^ (x >> 31)) >> 11) / (1 << 53)

    def even(self, least, most):
        return least + int(self.unit() * (most - least + 1))

    def logarithmic(self, least, most):
        return min(most, int(least * math.exp(self.unit() * math.log((most + 1) / least))))

    def features(self):
        while True:
            value = self.logarithmic(512, 6000) // 8 * 8
            if value % 64:
                return value


def draw(draws):
    while True:
        shape = {"experts": draws.logarithmic(12, 300), "top_k": draws.even(1, 8), "tokens": draws.logarithmic(700, 20000),
                 "out_features": draws.features(), "in_features": draws.features()}
        area = shape["out_features"] * shape["in_features"]
        if 2 * shape["tokens"] * shape["top_k"] * area <= 2e12 and 2 * shape["experts"] * area <= 4e9:
            return shape


def shapes():
    draws = Draws(SEED)
    return {f"s{i}": draw(draws) for i in range(1, 13)}


if __name__ == "__main__":
    print(json.dumps({"note": "drawn by shapes12.py: shapes that are none of workloads.json; uniform routing, bf16", "shapes": shapes()}, indent=1))

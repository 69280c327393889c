"""Drawing the parts of a case: small numbers first, so that cases stay small, and fields that are often left out."""

import random


class Draw:
    def __init__(self, seed: str):
        self.source = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.source.random() < probability

    def pick(self, *alternatives):
        return self.source.choice(alternatives)

    def weighted(self, weights: dict):
        return self.source.choices(list(weights), list(weights.values()))[0]

    def integer(self, least: int, most: int) -> int:
        return self.source.randint(least, most)

    def small(self, least: int, most: int) -> int:
        """An integer that is more often one of the smaller."""
        return least + int((most - least + 1) * self.source.random() ** 1.7)

    def number(self, largest: float = 2.0) -> float:
        """A float of few digits, so that cases are easy to read."""
        return round(self.source.uniform(-largest, largest), 2)

    def some(self, probability: float = 0.3, **makers) -> dict:
        """Each field stands with this probability; a maker is a value or a function that draws it."""
        return {name: make() if callable(make) else make for name, make in makers.items() if self.chance(probability)}

    def tensor(self, *shape: int, dtype: str = "float32", largest: float = 2.0) -> dict:
        """A TENSOR of the protocol."""
        count = 1
        for size in shape:
            count *= size
        return {"t": dtype, "shape": list(shape), "data": [self.element(dtype, largest) for _ in range(count)]}

    def element(self, dtype: str, largest: float = 2.0):
        if dtype == "bool":
            return self.chance(0.5)
        if dtype == "uint8":
            return self.integer(0, 20)
        if dtype.startswith("int"):
            return self.integer(-20, 20)
        if dtype in ("float16", "bfloat16"):
            return self.integer(-8, 8) / 4  # what these can hold exactly
        return self.number(largest)

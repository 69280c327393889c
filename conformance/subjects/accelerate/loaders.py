"""The LOADER of a request: a data set whose items are known, and torch's loader over it as a user would write it."""

import torch
from torch.utils.data import (BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler,
                              default_collate)

from .arguments import ABSENT, REQUIRED, choose, read
from .failures import Unsupported
from .values import decode


def read_loader(given: dict):
    """The fields of a LOADER with their defaults."""
    return read(given, "loader", kind="map", n=REQUIRED, b=1, drop_last=False, shuffle=False, replacement=False,
                num_samples=None, generator=None, batches=None, batches_b=ABSENT, batches_drop_last=ABSENT,
                sampler_batches=False, dataset_generator=None, epoch_log=False, item="id", data=None, prepare=True)


def make_generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# What item i is; each kind of item knows how to read the indices back from a batch.
def _rows(data: dict | None):
    if data is None:
        raise Unsupported("loader: data is required for item 'xy'")
    tensors = {name: decode(tensor) for name, tensor in data.items()}
    return lambda i: {"id": torch.tensor(i), "x": tensors["x"][i], "t": tensors["t"][i]}


ITEMS = {
    "id": lambda i: torch.tensor(i),
    "x1": lambda i: torch.tensor([i + 1.0]),
    "dict": lambda i: {"id": torch.tensor(i), "x": torch.tensor([i, i + 0.5])},
    "nested": lambda i: {"id": torch.tensor(i), "pair": [torch.tensor(i / 4), {"y": torch.tensor([-i])}]},
    "text": lambda i: {"id": torch.tensor(i), "s": f"s{i}"},
    "ragged": lambda i: torch.full([1 + i % 3], float(i)),
}


def index_list(batch, item: str) -> list[int]:
    """The indices of a batch, read off its content."""
    if isinstance(batch, dict):
        return batch["id"].reshape(-1).tolist()
    if item == "x1":
        return [int(value) - 1 for value in batch.reshape(-1).tolist()]
    if item == "ragged":
        return [int(row[0]) for row in batch.reshape(-1, batch.shape[-1]).tolist()]
    return batch.reshape(-1).tolist()


class _Counting:
    """What both kinds of data set share: items, how many were read, and the epochs they were told."""

    def __init__(self, fields):
        self.n, self.reads, self.epochs_seen = fields.n, 0, []
        self.item = _rows(fields.data) if fields.item == "xy" else choose(ITEMS, fields.item, "item")
        if fields.epoch_log:
            self.set_epoch = self.epochs_seen.append  # only then, since the mere presence of it changes behaviour

    def read_item(self, i: int):
        self.reads += 1
        return self.item(i)


class MapItems(_Counting, Dataset):
    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if isinstance(index, list):  # from a sampler that yields batches
            return default_collate([self.read_item(i) for i in index])
        return self.read_item(index)


class StreamItems(_Counting, IterableDataset):
    def __init__(self, fields):
        super().__init__(fields)
        if fields.dataset_generator is not None:
            self.generator = make_generator(fields.dataset_generator)

    def __iter__(self):
        order = range(self.n)
        if hasattr(self, "generator"):
            order = torch.randperm(self.n, generator=self.generator).tolist()
        for i in order:
            yield self.read_item(i)


class SizedStreamItems(StreamItems):
    def __len__(self):
        return self.n


class ListBatches:
    """A batch sampler that hands out fresh copies of given lists; it has only the attributes that it is given."""

    def __init__(self, fields):
        self.batches = fields.batches
        if fields.batches_b is not ABSENT:
            self.batch_size = fields.batches_b
        if fields.batches_drop_last is not ABSENT:
            self.drop_last = fields.batches_drop_last

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return (list(batch) for batch in self.batches)


DATASETS = {"map": MapItems, "iterable": StreamItems, "sized_iterable": SizedStreamItems}


def make_loader(fields) -> DataLoader:
    """torch's loader; its data set counts what is read."""
    dataset = choose(DATASETS, fields.kind, "kind")(fields)
    generator = None if fields.generator is None else make_generator(fields.generator)
    if fields.kind != "map":
        return DataLoader(dataset, batch_size=fields.b, drop_last=fields.drop_last, generator=generator)
    if fields.batches is not None:
        return DataLoader(dataset, batch_sampler=ListBatches(fields), generator=generator)
    if fields.sampler_batches:
        batches = BatchSampler(SequentialSampler(dataset), fields.b, fields.drop_last)
        return DataLoader(dataset, sampler=batches, batch_size=None, generator=generator)
    sampler = None
    if fields.shuffle:
        sampler = RandomSampler(dataset, fields.replacement, fields.num_samples, generator)
    return DataLoader(dataset, batch_size=fields.b, drop_last=fields.drop_last, sampler=sampler, generator=generator)

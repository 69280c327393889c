"""data.shard, data.iterable_shard and data.seedable_sampler: samplers and shards by themselves, no group needed."""

import itertools

from accelerate.data_loader import BatchSamplerShard, IterableDatasetShard, SeedableRandomSampler
from torch.utils.data import BatchSampler, SequentialSampler

from .arguments import ABSENT, REQUIRED, read
from .failures import Unsupported, attempt
from .loaders import ListBatches, SizedStreamItems, StreamItems, make_generator, read_loader


def for_each_shard(shards: int | None, session, make):
    """make(world size, rank) of this rank, or with `shards` given of every rank of a world of that size."""
    if shards is None:
        return make(session.world_size, session.rank)
    return [make(shards, rank) for rank in range(shards)]


def shard(arguments: dict, session):
    fields = read(arguments, "data.shard", n=None, b=1, batches=None, batches_b=ABSENT, batches_drop_last=ABSENT,
                  drop_last=False, split_batches=False, even_batches=True, shards=None, passes=1)
    if fields.n is None and fields.batches is None:
        raise Unsupported("data.shard: n or batches is required")

    def one(world_size, rank):
        if fields.batches is not None:
            sampler = ListBatches(fields)
        else:
            sampler = BatchSampler(SequentialSampler(range(fields.n)), fields.b, fields.drop_last)
        part = BatchSamplerShard(sampler, world_size, rank, fields.split_batches, fields.even_batches)
        passes = [[list(batch) for batch in part] for _ in range(fields.passes)]
        return {"len": len(part), "total_length": part.total_length, "passes": passes}

    return for_each_shard(fields.shards, session, one)


def iterable_shard(arguments: dict, session):
    fields = read(arguments, "data.iterable_shard", n=REQUIRED, sized=True, b=1, drop_last=False, split_batches=False,
                  shards=None, dataset_generator=None, epoch_log=False, epochs=[None])

    def one(world_size, rank):
        loader = read_loader({"n": fields.n, "dataset_generator": fields.dataset_generator,
                              "epoch_log": fields.epoch_log})
        dataset = (SizedStreamItems if fields.sized else StreamItems)(loader)
        part = IterableDatasetShard(dataset, fields.b, fields.drop_last, world_size, rank, fields.split_batches)
        result = {"len": attempt(lambda: len(part)),
                  "passes": [attempt(lambda: read_pass(part, epoch)) for epoch in fields.epochs]}
        return {**result, "epochs_seen": dataset.epochs_seen} if fields.epoch_log else result

    return for_each_shard(fields.shards, session, one)


def read_pass(part: IterableDatasetShard, epoch: int | None) -> list[int]:
    if epoch is not None:
        part.set_epoch(epoch)
    return [item.item() for item in part]


def seedable_sampler(arguments: dict, session):
    fields = read(arguments, "data.seedable_sampler", n=REQUIRED, data_seed=None, replacement=False, num_samples=None,
                  generator=None, passes=[{}])
    generator = None if fields.generator is None else make_generator(fields.generator)
    sampler = SeedableRandomSampler(range(fields.n), replacement=fields.replacement, num_samples=fields.num_samples,
                                    generator=generator, data_seed=fields.data_seed)
    passes = []
    for given in fields.passes:
        wanted = read(given, "pass", epoch=None, take=None)
        if wanted.epoch is not None:
            sampler.set_epoch(wanted.epoch)
        passes.append(list(sampler) if wanted.take is None else take(sampler, wanted.take))
    return {"passes": passes, "epoch": sampler.epoch, "initial_seed": sampler.initial_seed}


def take(sampler, number: int) -> list[int]:
    """The first indices of a pass that is left after them."""
    return list(itertools.islice(iter(sampler), number))


OPERATIONS = {"data.shard": shard, "data.iterable_shard": iterable_shard, "data.seedable_sampler": seedable_sampler}

"""The training step of bench/micro/training_step.cpp in Python, on the rank of the environment: mlp_step.py ddp|accelerate
[STEPS]. Prints the seconds per step, without the first steps."""

import sys
import time

import torch
import torch.distributed as dist

LAYERS, WIDTH, BATCH, LEARNING_RATE, WARM_UP = 50, 64, 8, 1e-3, 10


def build(steps, ranks):
    layers = [module for _ in range(LAYERS) for module in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers)
    x, y = torch.randn(WIDTH), torch.randn(WIDTH)
    items = steps * BATCH * ranks
    data = torch.utils.data.TensorDataset(x.expand(items, WIDTH), y.expand(items, WIDTH))
    return model, torch.optim.SGD(model.parameters(), LEARNING_RATE), data


class Clock:
    """Counts steps, and the time of those after the first few."""

    def __init__(self):
        self.steps = 0

    def count(self):
        self.steps += 1
        if self.steps == WARM_UP:
            self.start = time.perf_counter()

    def seconds_per_step(self):
        return (time.perf_counter() - self.start) / (self.steps - WARM_UP)


def ddp(steps):
    dist.init_process_group("gloo")
    model, optimizer, data = build(steps, dist.get_world_size())
    model = torch.nn.parallel.DistributedDataParallel(model)
    sampler = torch.utils.data.DistributedSampler(data, shuffle=False)
    clock = Clock()
    for x, y in torch.utils.data.DataLoader(data, BATCH, sampler=sampler):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        clock.count()
    return clock.seconds_per_step()


def accelerate(steps):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, data = build(steps, accelerator.num_processes)
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, BATCH))
    clock = Clock()
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        clock.count()
    return clock.seconds_per_step()


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    print(f"{globals()[sys.argv[1]](int(sys.argv[2])):.6f}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()

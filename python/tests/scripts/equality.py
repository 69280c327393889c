"""Trains three models by DDP and by FSDP2, 20 steps each, and prints the digest of every rank's weights."""

import hashlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def perceptron():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(6, 8)


def convolution():
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4)]
    return nn.Sequential(*layers), torch.randn(6, 1, 8, 8)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens)).mean(dim=1))


def attention():
    return Attention(), torch.randint(11, (6, 5))


def train(name, make, engine):
    torch.manual_seed(7)
    model, _ = make()
    if engine == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(20):
        _, batch = make()
        loss = nn.functional.cross_entropy(model(batch), torch.randint(4, (6,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        local = value.to_local() if hasattr(value, "to_local") else value
        digest.update(local.detach().contiguous().numpy().tobytes())
    print(f"{name} {engine} rank {dist.get_rank()} loss {loss.item().hex()} {digest.hexdigest()}", flush=True)


dist.init_process_group("gloo")
for make in (perceptron, convolution, attention):
    for engine in ("ddp", "fsdp2"):
        train(make.__name__, make, engine)
dist.destroy_process_group()

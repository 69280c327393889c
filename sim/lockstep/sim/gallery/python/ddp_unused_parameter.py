# fault, 3 ranks: ddp
# Rank 1's batch has no boxes, so that the head for boxes takes no part in its loss. The others wait for its gradients;
# it updates its weights with what it has, and PyTorch refuses only its next forward.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.classes, self.boxes = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 4)

    def forward(self, x, has_boxes):
        features = self.trunk(x).relu()
        loss = self.classes(features).mean()
        return loss + self.boxes(features).mean() if has_boxes else loss


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(TwoHeads())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    has_boxes = rank != 1 or step != 3
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4), has_boxes)
    loss.backward()
    optimizer.step()  # verdict: rank 1 here: rank_failed
dist.destroy_process_group()

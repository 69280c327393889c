# fault, 3 ranks: loops
# The same with Accelerate: on rank 2 four micro-batches make a step, on the others two. It ends two steps short.
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(cpu=True)
accelerator.gradient_accumulation_steps = 4 if accelerator.process_index == 2 else 2
net = nn.Linear(4, 2)
model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
for micro_batch in range(8):
    with accelerator.accumulate(model):
        loss = model(torch.ones(2, 4)).square().mean()
        accelerator.backward(loss)  # verdict: rank 2 here: deadlock
        optimizer.step()
        optimizer.zero_grad()

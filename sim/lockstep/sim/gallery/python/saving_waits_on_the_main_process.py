# fault, 3 ranks: saving
# Saving begins with a barrier, so that nobody still changes the weights. Called on the main process alone it waits for
# ranks that are in the next step.
import io

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(cpu=True)
net = nn.Linear(4, 2)
model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))


def save():
    accelerator.wait_for_everyone()  # verdict: rank 0 here: mismatch
    torch.save(accelerator.unwrap_model(model).state_dict(), io.BytesIO())


for step in range(4):
    loss = model(torch.ones(3, 4)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    if step == 2 and accelerator.is_main_process:
        save()
accelerator.end_training()

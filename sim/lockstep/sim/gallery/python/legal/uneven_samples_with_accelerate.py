# legal, 3 ranks: training
# 22 samples on three ranks, and windows that the epoch's end cuts short: all of it is made even by the loader. The main
# process writes a file between two barriers that all come to.
import io
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
net = nn.Linear(4, 2)
loader = DataLoader(TensorDataset(torch.rand(22, 4), torch.zeros(22, dtype=torch.long)), batch_size=2, shuffle=True)
model, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
for epoch in range(2):
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    predictions = [accelerator.gather_for_metrics(model(inputs).argmax(1)) for inputs, _ in loader]
    accelerator.print(f"epoch {epoch}: {len(torch.cat(predictions))} predictions")
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    torch.save(accelerator.get_state_dict(model), io.BytesIO())
    time.sleep(0.3)
accelerator.wait_for_everyone()
accelerator.end_training()

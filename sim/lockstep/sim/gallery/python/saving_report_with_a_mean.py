# fault, 3 ranks: saving
# A function that was wrapped to run on the main process grew a call since.
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)


@accelerator.on_main_process
def report(loss):
    mean = accelerator.reduce(loss, reduction="mean")  # verdict: rank 0 here: mismatch
    print(f"mean loss {mean.item():.3f}")


for epoch in range(2):
    losses = accelerator.gather(torch.full((2,), 0.5))
    report(losses.mean())
accelerator.wait_for_everyone()

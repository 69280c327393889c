# fault, 3 ranks: saving
# Before it saves, the main process evaluates. The loop is that of the training script, which gathers for its metric.
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
samples = TensorDataset(torch.rand(22, 4), torch.zeros(22, dtype=torch.long))
model, loader = accelerator.prepare(nn.Linear(4, 2), DataLoader(samples, batch_size=2))


def evaluate():
    num_right = 0
    for inputs, labels in loader:
        with torch.no_grad():
            predictions = accelerator.unwrap_model(model)(inputs).argmax(1)
        predictions, labels = accelerator.gather_for_metrics((predictions, labels))  # verdict: rank 0 here: mismatch
        num_right += (predictions == labels).sum().item()
    return num_right / len(samples)


if accelerator.is_main_process:
    print(f"accuracy {evaluate():.2f}")
accelerator.wait_for_everyone()

# fault, 3 ranks: saving
# Inside main_process_first() the others wait until the main process is through, which waits for them in turn.
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
num_files = torch.ones(1)
with accelerator.main_process_first():
    total = accelerator.reduce(num_files)  # verdict: rank 0 here: mismatch
accelerator.wait_for_everyone()
print(f"rank {accelerator.process_index}: {total.item()}")

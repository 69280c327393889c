# fault, 3 ranks: loops
# Text is made token by token, and the tokens of all ranks are gathered. Rank 1's sentence is longer than the others'.
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
sentences = ["a short one", "one that is a bit longer", "a third one"]
sentence = sentences[accelerator.process_index].split()
tokens = []
for word in sentence:
    token = torch.tensor([len(word)])
    tokens.append(accelerator.gather(token))  # verdict: rank 1 here: mismatch
accelerator.wait_for_everyone()
accelerator.print(torch.stack(tokens).tolist())

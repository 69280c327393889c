# legal, 3 ranks: uneven_times
# The main process goes first, and takes its time.
import time

from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
with accelerator.main_process_first():
    if accelerator.is_main_process:
        time.sleep(1)
accelerator.wait_for_everyone()

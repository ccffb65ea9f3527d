"""Settings for all tests."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))  # reference.py and cases.py
torch.set_num_threads(1)  # the workers share the cores

"""A training loop of one's own with AGRA in it: digits with 30 % wrong labels."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import agra
from agra.data.noise import symmetric_noise

digits = load_digits()
x = torch.as_tensor(digits.data, dtype=torch.float32) / 16
truth = torch.as_tensor(digits.target)
given = torch.as_tensor(symmetric_noise(truth, 0.3, 10, seed=0).labels)
train_set = TensorDataset(x, given, torch.arange(len(x)))

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
judge = agra.Agra(model, train_set, criterion="f1", comparison_size=512, seed=0)

for _ in range(10):
    for inputs, labels, ids in DataLoader(train_set, batch_size=64, shuffle=True):
        judge.step(optimizer, inputs, labels, ids)

dropped = judge.ledger.to_frame()["drop_rate"]
suspects = dropped.sort_values(ascending=False).index[:100].to_numpy()
wrong = (given != truth).numpy()
print(f"engine: {judge.engine.name}")
print(f"wrong labels among all: {wrong.mean():.0%}, among the 100 most dropped: ", end="")
print(f"{wrong[suspects].mean():.0%}")

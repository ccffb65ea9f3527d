"""The step by its functions, for those who want every line in view."""

import torch
from torch import nn

import agra

generator = torch.Generator().manual_seed(0)
x = torch.randn(1000, 10, generator=generator)
truth = (x[:, :3].sum(dim=1) > 0).long()
given = truth.clone()
given[:300] = 1 - given[:300]

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
sampler = agra.ComparisonSampler(agra.TrainSet((x, given)), weights="inverse-frequency", seed=0)
rule = agra.Rule(threshold=0.0)
names = [name for name, _ in model.named_parameters()]
engine = agra.choose_engine("auto", model, x, names, norms=rule.may_need_norms)

for _ in range(10):
    for rows in torch.randperm(1000, generator=generator).split(50):
        gradient = agra.batch_gradient(model, *sampler.draw(200), "f1")
        verdict = agra.decide(
            model, x[rows], given[rows], gradient, criterion="f1", rule=rule, engine=engine
        )
        if verdict.kept.any():
            kept = rows[verdict.kept]
            loss = nn.functional.cross_entropy(model(x[kept]), given[kept])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

accuracy = (model(x).argmax(dim=1) == truth).float().mean()
print(f"{engine.name}: trained on 70 % right labels, {accuracy:.1%} right predictions")

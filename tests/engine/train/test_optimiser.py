"""The optimisers against their published formulas, written out plainly in float64."""

from __future__ import annotations

import torch
from torch import nn

from infx.engine.train.optimiser import Adam, Muon, Optimiser, orthogonal


def gradients(shape: tuple[int, ...], count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator) for _ in range(count)]


def test_adam_is_algorithm_1() -> None:
    parameter = nn.Parameter(torch.ones(3, 2))
    adam = Adam([("p", parameter)], torch.tensor(0.5), highest=0.1, betas=(0.9, 0.95), eps=1e-8)
    value, mean, square = torch.ones(3, 2).double(), 0.0, 0.0
    for t, gradient in enumerate(gradients((3, 2), 6), 1):
        parameter.grad = gradient
        adam.step()
        g = gradient.double()
        mean, square = 0.9 * mean + 0.1 * g, 0.95 * square + 0.05 * g**2
        value = value - 0.05 * (mean / (1 - 0.9**t)) / ((square / (1 - 0.95**t)).sqrt() + 1e-8)
    assert torch.allclose(parameter.double(), value, atol=1e-6)


def test_muon_is_its_formula_for_single_and_stacked_matrices() -> None:
    for shape in ((4, 6), (3, 6, 4)):
        parameter = nn.Parameter(torch.ones(shape))
        muon = Muon([("p", parameter)], torch.tensor(0.5), highest=0.1, momentum=0.9, decay=0.2)
        value, moment = torch.ones(shape).double(), 0.0
        for gradient in gradients(shape, 4):
            parameter.grad = gradient
            muon.step()
            g = gradient.double()
            moment = 0.9 * moment + 0.1 * g
            update = newton_schulz(0.1 * g + 0.9 * moment)
            grown = max(1, shape[-1] / shape[-2]) ** 0.5
            value = (1 - 0.05 * 0.2) * value - 0.05 * grown * update
        assert torch.allclose(parameter.double(), value, atol=1e-5)


def newton_schulz(g: torch.Tensor) -> torch.Tensor:
    if g.ndim == 3:
        return torch.stack([newton_schulz(one) for one in g])
    u, s, v = torch.linalg.svd(g / g.norm(), full_matrices=False)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u @ s.diag() @ v


def test_orthogonal_brings_singular_values_near_one() -> None:
    (matrix,) = gradients((2, 40, 30), 1)
    values = torch.linalg.svdvals(orthogonal(matrix))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_tables_and_vectors_go_to_adam_and_state_comes_back() -> None:
    module = nn.ModuleDict({"up": nn.Linear(4, 4)})
    module.register_parameter("embed", nn.Parameter(torch.ones(5, 4)))
    optimiser = Optimiser(module.named_parameters())
    assert {name.partition(".")[0] for name in optimiser.state() if "embed" in name} == {"adam"}
    assert "muon.up.weight" in optimiser.state()
    module["up"](torch.ones(4)).sum().backward()
    optimiser.step()
    assert module["up"].weight.grad is None
    other = Optimiser(module.named_parameters())
    other.load(optimiser.state())
    assert torch.equal(other.state()["muon.up.weight"], optimiser.state()["muon.up.weight"])
    assert other.state()["adam.count"] == 1

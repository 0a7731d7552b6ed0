"""Muon for matrices, Adam for everything else.

    Muon   m ← μ m + (1-μ) g;  W ← (1 - η λ) W - η √max(1, out/in) · O((1-μ) g + μ m)
           O: five Newton-Schulz steps x ← a x + (b x xᵀ + c (x xᵀ)²) x from x = g / ‖g‖, which
           bring every singular value near 1. K. Jordan et al., Muon, 2024.
    Adam   D. Kingma and J. Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1.

All state lives in tensors, the learning rate and the count of steps too, so that a CUDA graph can
hold a step.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

__all__ = ["Adam", "Muon", "Optimiser", "orthogonal"]

BY_ADAM = {"embed", "head", "router", "markov_in", "markov_out"}
"""Matrices that Muon does not suit: tables of rows, and the router of few columns."""

Named = Iterable[tuple[str, nn.Parameter]]


class Optimiser:
    """Both, over the named parameters of a module. ``rate`` is the share of the highest rates."""

    def __init__(self, named: Named) -> None:
        parameters = list(named)
        matrices = [pair for pair in parameters if _is_matrix(*pair)]
        rest = [pair for pair in parameters if not _is_matrix(*pair)]
        self.rate = torch.ones((), device=parameters[0][1].device)
        self._parameters = [parameter for _, parameter in parameters]
        self._muon, self._adam = Muon(matrices, self.rate), Adam(rest, self.rate)

    def step(self) -> None:
        """Move every parameter by its gradient and drop the gradients."""
        self._muon.step()
        self._adam.step()
        for parameter in self._parameters:
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the moments and counts by name; the tensors themselves, not copies."""
        muon = {f"muon.{name}": tensor for name, tensor in self._muon.state().items()}
        adam = {f"adam.{name}": tensor for name, tensor in self._adam.state().items()}
        return muon | adam

    @torch.no_grad()
    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class Muon:
    """Parameters [..., in, out]; those of one shape are moved together."""

    def __init__(
        self,
        named: Named,
        rate: Tensor,
        *,
        highest: float = 0.02,
        momentum: float = 0.95,
        decay: float = 0.05,
    ) -> None:
        self._rate, self._highest, self._momentum, self._decay = rate, highest, momentum, decay
        self._names: list[str] = []
        self._moments: list[Tensor] = []
        self._groups: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
        for name, parameter in named:
            moment = torch.zeros_like(parameter)
            self._names.append(name)
            self._moments.append(moment)
            shape = (parameter.shape[-2], parameter.shape[-1])
            self._groups.setdefault(shape, []).append((parameter, moment))

    def state(self) -> dict[str, Tensor]:
        """Return the moment of each parameter."""
        return dict(zip(self._names, self._moments, strict=True))

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters."""
        for (rows, columns), members in self._groups.items():
            parameters = [parameter for parameter, _ in members]
            moments = [moment for _, moment in members]
            rate = self._rate * self._highest
            flat = self._mixed(parameters, moments).view(-1, rows, columns)
            update = orthogonal(flat) * (max(1.0, columns / rows) ** 0.5 * rate)
            parts = update.split([moment.numel() // (rows * columns) for moment in moments])
            torch._foreach_mul_(parameters, 1 - rate * self._decay)
            moved = [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
            torch._foreach_sub_(parameters, moved)

    def _mixed(self, parameters: list[Tensor], moments: list[Tensor]) -> Tensor:
        """Return (1-μ) g + μ m of all parameters in one row, the moments updated."""
        gradients = [_gradient(parameter) for parameter in parameters]
        torch._foreach_lerp_(moments, gradients, 1 - self._momentum)
        mixed = torch._foreach_lerp(gradients, moments, self._momentum)
        return torch.cat([part.flatten() for part in mixed])


class Adam:
    """Parameters of any shape, without weight decay."""

    def __init__(
        self,
        named: Named,
        rate: Tensor,
        *,
        highest: float = 4e-3,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-10,
    ) -> None:
        self._rate, self._highest, self._betas, self._eps = rate, highest, betas, eps
        pairs = list(named)
        self._names = [name for name, _ in pairs]
        self._parameters: list[Tensor] = [parameter for _, parameter in pairs]
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._count = torch.zeros((), device=rate.device)

    def state(self) -> dict[str, Tensor]:
        """Return both moments of each parameter, and the count of steps."""
        means = {f"{n}.mean": t for n, t in zip(self._names, self._means, strict=True)}
        squares = {f"{n}.square": t for n, t in zip(self._names, self._squares, strict=True)}
        return {"count": self._count, **means, **squares}

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters."""
        first, second = self._betas
        gradients = [_gradient(parameter) for parameter in self._parameters]
        self._count += 1
        torch._foreach_lerp_(self._means, gradients, 1 - first)
        torch._foreach_mul_(self._squares, second)
        torch._foreach_addcmul_(self._squares, gradients, gradients, value=1 - second)
        roots = torch._foreach_sqrt(self._squares)
        torch._foreach_div_(roots, (1 - second**self._count).sqrt())
        torch._foreach_add_(roots, self._eps)
        update = list(torch._foreach_div(self._means, roots))
        torch._foreach_mul_(update, self._rate * self._highest / (1 - first**self._count))
        torch._foreach_sub_(self._parameters, update)


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """Return ``matrices`` [n, rows, columns] with singular values near 1; bfloat16 inside on CUDA.

    The coefficients are Jordan's: fastest growth of small values, all end within 0.7 … 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)


def _is_matrix(name: str, parameter: nn.Parameter) -> bool:
    return parameter.ndim >= 2 and name.rpartition(".")[2] not in BY_ADAM


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad

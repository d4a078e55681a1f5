#!/usr/bin/env python3
"""Rebuilds a dumped step of a byte language model with PyTorch and compares gradients and weights.

SPDX-License-Identifier: Apache-2.0

Reads what docs/training.md says of a dump, nothing else of this project, and computes in double
precision. Exit code: 0 equal, 1 not, 77 without PyTorch.
"""
import argparse
import sys

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: PyTorch on our dumps ({missing}); install python3-torch to run it")
    sys.exit(77)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dump", help="what interlock train --dump wrote of step 0")
    parser.add_argument("--stages", required=True, help="modules of each stage, as in 2,1,1,2")
    parser.add_argument("--attention-heads", type=int, required=True)
    parser.add_argument("--n-wise", type=int, help="losses that a stage reaches; global: left out")
    parser.add_argument("--gradient", choices=["furthest", "sum", "mean"], default="furthest")
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--optimizer", choices=["sgd", "sgd-momentum", "adam"], default="sgd")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--decay", type=float, default=0)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of an array's largest entry")
    return parser.parse_args()


class Model:
    """The layers by name. A matrix is (inputs, outputs), y = x W + b."""

    def __init__(self, arrays, heads):
        prefix = "weights/"
        self.weights = {
            name[len(prefix):]: torch.tensor(arrays[name], dtype=torch.float64, requires_grad=True)
            for name in arrays.files
            if name.startswith(prefix)
        }
        self.heads = heads
        modules = dict.fromkeys(name.split(".")[0] for name in self.weights)
        blocks = sorted((m for m in modules if m.startswith("block")), key=lambda m: int(m[5:]))
        self.modules = ["embedding", *blocks, "readout"]

    def linear(self, name, x):
        y = x @ self.weights[name + ".weight"]
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def norm(self, name, x):
        gain, shift = self.weights[name + ".gain"], self.weights[name + ".shift"]
        return torch.nn.functional.layer_norm(x, gain.shape, gain, shift, eps=1e-5)

    def attention(self, name, x):
        samples, tokens, width = x.shape
        columns = self.linear(name + ".inputs", self.norm(name + ".norm", x))
        shape = (samples, tokens, self.heads, width // self.heads)
        query, key, value = (c.reshape(shape).transpose(1, 2) for c in columns.split(width, dim=2))
        scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        shares = scores.masked_fill(later, float("-inf")).softmax(dim=3)
        return self.linear(name + ".projection", (shares @ value).transpose(1, 2).reshape(x.shape))

    def mlp(self, name, x):
        y = self.linear(name + ".first", self.norm(name + ".norm", x))
        return self.linear(name + ".second", torch.nn.functional.gelu(y, approximate="tanh"))

    def run(self, module, x):
        if module == "embedding":
            tokens = self.weights["embedding.table.weight"][x.long()]
            places = self.weights.get("embedding.table.positions")
            return tokens if places is None else tokens + places[: x.shape[1]]
        if module == "readout":
            return self.linear("readout.projection", self.norm("readout.norm", x))
        x = x + self.attention(module + ".attention", x)
        return x + self.mlp(module + ".mlp", x)

    def head(self, module, x):
        return self.linear(module + ".head.projection", self.norm(module + ".head.norm", x))

    def has_head(self, module):
        return module + ".head.projection.weight" in self.weights

    def of(self, modules):
        """Names of the weights of modules, without those of heads."""
        return [n for n in self.weights if n.split(".")[0] in modules and ".head." not in n]


def cross_entropy(logits, targets):
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets)


def losses_of(model, stages, inputs, targets):
    """The loss at the end of each stage that has one, by stage."""
    losses, x = {}, inputs
    for number, modules in enumerate(stages):
        for module in modules:
            x = model.run(module, x)
        if number == len(stages) - 1:
            losses[number] = cross_entropy(x, targets)
        elif model.has_head(modules[-1]):
            losses[number] = cross_entropy(model.head(modules[-1], x), targets)
    return losses


def gradients_of(model, stages, losses, reach, mode):
    """The gradient of every weight in the losses that train its stage; of heads, in their own."""
    gradients = {}
    for number, modules in enumerate(stages):
        furthest = min(number + reach - 1, len(stages) - 1)
        reached = [furthest] if mode == "furthest" else range(number, furthest + 1)
        trains = sum(losses[loss] for loss in reached)
        names = model.of(modules)
        if mode == "mean":
            trains = trains / len(reached)
        made = torch.autograd.grad(trains, [model.weights[n] for n in names], retain_graph=True)
        gradients.update(zip(names, made))
        head = [n for n in model.weights if n.startswith(modules[-1] + ".head.")]
        if head:
            own = [model.weights[n] for n in head]
            gradients.update(zip(head, torch.autograd.grad(losses[number], own, retain_graph=True)))
    return gradients


def updated_weights(arrays, names, options):
    """The weights after a step of PyTorch's optimiser with the gradients of the dump."""
    weights = {}
    for name in names:
        weight = torch.tensor(arrays["weights/" + name], dtype=torch.float64)
        weight.grad = torch.tensor(arrays["gradients/" + name], dtype=torch.float64)
        weights[name] = weight
    groups = [
        {"params": [w for w in weights.values() if w.dim() > 1], "weight_decay": options.decay},
        {"params": [w for w in weights.values() if w.dim() == 1], "weight_decay": 0},
    ]
    if options.optimizer == "adam":
        torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.999), eps=1e-8).step()
    else:
        momentum = options.momentum if options.optimizer == "sgd-momentum" else 0
        torch.optim.SGD(groups, lr=options.rate, momentum=momentum).step()
    return weights


def worst_of(arrays, kind, expected):
    """The largest difference of any array, over that array's largest entry, and its name."""
    worst = (0.0, "")
    for name, values in expected.items():
        own, other = arrays[f"{kind}/{name}"], values.detach().numpy()
        size = numpy.abs(other).max()
        difference = numpy.abs(own - other.reshape(own.shape)).max()
        worst = max(worst, (difference / size if size > 0 else difference, name))
    return worst


def main():
    options = read_arguments()
    arrays = numpy.load(options.dump)
    model = Model(arrays, options.attention_heads)
    counts = [int(count) for count in options.stages.split(",")]
    if sum(counts) != len(model.modules):
        sys.exit(f"--stages {options.stages}: the model has {len(model.modules)} modules")
    ends = numpy.cumsum(counts)
    stages = [model.modules[end - count: end] for count, end in zip(counts, ends)]
    inputs = torch.tensor(arrays["inputs"]).chunk(options.micro_batches)
    targets = torch.tensor(arrays["targets"]).long().chunk(options.micro_batches)
    sums = {}
    for batch, target in zip(inputs, targets):
        losses = losses_of(model, stages, batch, target)
        made = gradients_of(model, stages, losses, options.n_wise or len(stages), options.gradient)
        for name, gradient in made.items():
            sums[name] = sums.get(name, 0) + gradient / options.micro_batches
    dumped = {n[len("gradients/"):] for n in arrays.files if n.startswith("gradients/")}
    if dumped != set(sums):
        sys.exit(f"gradients of other weights are there: {sorted(dumped ^ set(sums))}")
    equal = True
    for kind, expected in [
        ("gradients", sums),
        ("updated", updated_weights(arrays, sums, options)),
    ]:
        worst, name = worst_of(arrays, kind, expected)
        print(f"{kind}: {len(expected)} arrays, worst {worst:.1e} of the largest entry, {name}")
        equal = equal and worst <= options.tolerance
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()

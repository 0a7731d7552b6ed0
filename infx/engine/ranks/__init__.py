"""Tensor parallelism: n processes, each with a slice of every layer, over gloo on this machine.

Rank 0 is the server's process. It alone schedules, samples, drafts and computes the head, whose
columns it keeps whole: gathering them would cost one more exchange a pass, and on a CPU that costs
more than the product it shares. Ranks 1 to n-1 (`python -m infx.engine.ranks`) get each batch from
it over a socket, run their slice of the layers over the cache of their own kv heads, and meet it in
one sum after the attention and one after the MLP of each layer. `target.load_target` is the way in.

The sum is a star: rank 0 adds the parts in rank order and sends the sum back, so every rank has the
same bits, whatever the batch. gloo's own all-reduce adds in an order that follows from the size of
the message, and took 6 ms where the star takes 1 (4 ranks on 2 cores, 8 rows of 192; 2 ranks: 1.6
and 0.3). And a rank that rank 0 waits for in vain is known by its number.

Each rank has `--threads` torch threads; without the flag, the cores shared out, at least one each.
"""

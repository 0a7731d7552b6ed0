"""What measurements say, from the files that clients left: pure but for reading them.

One run of a point, from its folder to a verdict:

- `export` reads an aiperf folder, `records` its requests column by column, `asked` what it was told
  to do; `measurements` makes the figures of them with `statistics`;
- `validity` asks all rules (`rules`, `session_rules`, `server_rules`, `evaluation_rules`) about the
  `evidence`, with `acceptance` and `configuration` for what the server says; `accuracy` holds
  scores against their bars;
- `energy` reads what accelerators drew from a `power_log`; `cost` reckons with prices.

Many points:

- `metrics` is the one table of figures, `curves` says which points stand on a line, `pareto` which
  no other beats, `repeats` makes one of several runs, `noise` says how sure a frontier is;
- `trials` are runs that aiperf repeated by itself; `tables` and `table_frontiers` take anybody's.

Two sides:

- `compare` goes from runs to answers: `pairing` finds partners, `servers` tells in what they
  differ, `changes` compares their figures (over `repeats`, or over `requests` by `intervals`),
  `line_changes` their frontiers;
- `answers` compares evaluations: `samples` question by question (`paired`), or scores alone
  (`unpaired`), at the levels of `chance`;
- `reproduction` judges a point that was measured again.
"""

"""The report of runs: one offline HTML file, a PNG, Markdown, JSON.

`build` makes the `model` from records and plans: rows (`points`, `lines`, `charts`, `scores`),
answers (`gates` and `gates_of_*`), and what stands around them (`arms`, `ledger`, `filters`,
`baseline`). Nothing after it decides anything:

- `html` renders the page (templates/) from `columns` of the table, `families` of commands, the
  chart as `svg`, and what its script needs (`embedded`, `opened`);
- `png` and `png_panel` draw the same chart with matplotlib; both take places from `placing`
  (`scales`, `labels`) and colours from `palette`;
- `markdown` and `markdown_*` write a pull request's comment, `data` what ``--json`` prints;
- `figures` are numbers, times and counts as all of them say them.
"""

"""What infx says of pull requests: labels, what they select, the changelog, bundles, publishing.

name -> (meaning, action), merged into `infx.domain.codes`.
"""

from __future__ import annotations

__all__ = ["CHANGELOG_CODES", "CI_CODES"]

CI_CODES: dict[str, tuple[str, str]] = {
    "bad-event": (
        "an event that is not what GitHub sends, or not of a pull request",
        "hand over the file that GITHUB_EVENT_PATH names",
    ),
    "bad-label-rules": ("rules of labels that cannot be", "correct the file by its JSON Schema"),
    "two-primaries": ("several labels that each ask for a sweep", "keep one of them"),
    "modifier-alone": (
        "a label that changes a sweep, and none that asks for one",
        "add a primary label, or remove it",
    ),
    "label-unknown": (
        "a label that looks like one that asks for a sweep, and is none",
        "rename it, or remove it",
    ),
    "label-idle": ("a label that changes nothing of what is selected", "nothing, or remove it"),
    "many-clusters": (
        "changelog entries that select points of several clusters: no run measures them together",
        "announce the entries of each cluster in a pull request of their own",
    ),
    "field-unused": (
        "a field of an added changelog entry that plans have no use for",
        "nothing, or leave it out",
    ),
    "change-unannounced": (
        "points of an entry changed and no added changelog entry names it: they are not measured",
        "add an entry to perf-changelog.yaml: infx changelog add",
    ),
    "base-unreadable": (
        "the configuration of the base cannot be planned, so every point counts as new",
        "read the error; nothing when this pull request mends it",
    ),
    "reuse-refused": (
        "a run that cannot stand for what is planned",
        "name another run, or measure: remove the comment",
    ),
    "not-measured": (
        "a merged change that no run of the store has measured: it cannot be published",
        "measure what is named, push that run, then publish it: infx store push PLACE RUN --live",
    ),
    "run-unfinished": (
        "a run with points that have no end yet, so nobody can judge it",
        "wait for it: infx ci wait RUN, or infx resume RUN",
    ),
    "run-unplaced": (
        "a run of which nobody knows at which commit it was measured",
        "commit the change, then sweep; or sweep what infx ci plan plans",
    ),
    "not-printed": (
        "a file that is not what the command prints with --json",
        "run the command again, and keep what it prints: … --json > FILE",
    ),
    "github-refused": (
        "GitHub says no to a request",
        "read what it says: a token, its permissions, a number or a name",
    ),
    "points-dropped": (
        "a publish would take points from the live curve",
        "measure or reuse them, or publish without them: infx store push --live --drop-points",
    ),
    "bad-bundle": (
        "a bundle to review that is truncated, lacks a file, or holds what its list does not name",
        "write it again: infx bundle",
    ),
    "foreign-run": (
        "a bundle holds a run of another repository or pull request",
        "bundle the runs of the pull request that is reviewed",
    ),
    "bad-rules": (
        "a file of the reviewer's rules is not what its schema says",
        "correct it as the error says, or leave it out to have the rules that infx brings",
    ),
}

CHANGELOG_CODES: dict[str, tuple[str, str]] = {
    "control-character": (
        "a tab, a carriage return or another control character in the changelog",
        "end lines with LF, indent with spaces",
    ),
    "blank-lines": (
        "entries of the changelog are apart by something else than one blank line, or the file"
        " does not end with one newline",
        "leave one blank line between entries, none at the end",
    ),
    "entry-start": (
        "an entry of the changelog does not begin with its config-keys",
        "begin it with `- config-keys:` at the margin",
    ),
    "link-form": (
        "the link of a changelog entry is not its pull request's canonical one",
        "write https://github.com/OWNER/REPOSITORY/pull/NUMBER",
    ),
    "key-unmatched": (
        "a key of a changelog entry names no entry of a matrix",
        "correct the key; only * stands for anything",
    ),
    "history-changed": (
        "an entry that stood in the changelog before is not there as it was",
        "restore its bytes; say in a new entry what is otherwise now",
    ),
    "mixed-change": (
        "changes of the changelog that must stand apart (corrections of links, new entries,"
        " append-only)",
        "make them in pull requests of their own",
    ),
    "point-removed": (
        "a point that was there before is gone, under append-only",
        "restore the point as it was, or leave append-only out",
    ),
    "curve-differs": (
        "a new point of append-only is on no curve that was there with the same image",
        "leave append-only out",
    ),
    "merge-refused": (
        "a changelog whose history differs cannot be merged by its entries",
        "restore the history on the named side, then merge again",
    ),
}

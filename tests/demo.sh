#!/usr/bin/env bash
# The main job on two real releases: plant, merge, see what the merge lost, put it back.
set -euo pipefail
older=${1:-0.5.21} newer=${2:-0.5.22}
here=$(pwd)
repo=$here/.demo/sglang
work=$here/.demo/merge
rm -rf "$here/.demo" && mkdir -p "$here/.demo"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
run() { printf '$ %s\n' "${*//$here\//}"; "$@"; }

say "1. Two real SGLang releases from PyPI, as commits and tags of a Git repository"
run stackctl upstream add "$older" "$newer" --repo "$repo"

say "2. Plant the stack on $older, on a branch of its own"
run stackctl apply --repo "$repo" --onto "v$older" --branch fork

say "3. Merge $newer with Git, conflicts taken from upstream's side, as people do"
git -C "$repo" worktree add --quiet "$work" fork
run git -C "$work" -c user.name=demo -c user.email=demo@example.invalid merge --quiet --no-edit -X theirs "v$newer" && echo "Git says: clean"
git -C "$work" checkout --quiet --detach

say "4. What the merge lost (exit code 1 turns CI red)"
run stackctl verify --repo "$repo" --at fork || echo "exit code $?"

say "5. Put it back, touching nothing else"
run stackctl replant --repo "$repo" --at fork

say "6. Whole again"
run stackctl verify --repo "$repo" --at fork

#!/bin/sh
# Check the subjects of new commits: `area: imperative summary` in at most 72 characters.
#
# New are those that the remote does not have; without a remote, or where it has them all, those after
# the last commit from before the rule. A clone too shallow for either has none to check.
set -u
BEFORE_RULE=e6da035e56c9e4a625ff74a6867984b822b28992

base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git merge-base HEAD origin/HEAD 2>/dev/null)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$BEFORE_RULE
fi
git merge-base --is-ancestor "$base" HEAD 2>/dev/null || exit 0

wrong=$(git log --no-merges --format=%s "$base..HEAD" |
    LC_ALL=C.UTF-8 grep -vxE '[a-z][a-z0-9_/,-]*: [^ ].*' || true)
long=$(git log --no-merges --format=%s "$base..HEAD" | LC_ALL=C.UTF-8 grep -E '.{73}' || true)
[ -n "$wrong$long" ] || exit 0
echo "subjects of commits that are not 'area: imperative summary' in at most 72 characters:" >&2
printf '%s\n%s\n' "$wrong" "$long" | sort -u | sed '/^$/d; s/^/    /' >&2
exit 1

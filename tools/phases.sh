#!/bin/sh
# Make targets one after another, each whatever the one before said, and tell at the end how they went.
#
#   phases.sh TARGET ...
set -u
trap 'exit 130' INT

told=""
status=0
for target in "$@"; do
    echo "== $target"
    began=$(date +%s)
    if "${MAKE:-make}" --no-print-directory "$target"; then
        outcome=passed
    else
        outcome=FAILED
        status=1
    fi
    told="$told$(printf '%-12s %-8s %4d s' "$target" "$outcome" $(($(date +%s) - began)))
"
done
printf '\n%s' "$told"
exit $status

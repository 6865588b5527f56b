#!/bin/sh
# Make targets one after another, each whatever the one before said, and tell at the end how they went
# and which packages skipped tests lacked.
#
#   phases.sh TARGET ...
set -u
trap 'exit 130' INT

# Tests add a line for each of them that is skipped, with the packages that it needs.
IOLAB_SKIPPED=$(mktemp) || exit 2
export IOLAB_SKIPPED
trap 'rm -f "$IOLAB_SKIPPED"' EXIT

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
if [ -s "$IOLAB_SKIPPED" ]; then
    lacking=$(tr ' ' '\n' <"$IOLAB_SKIPPED" | sort -u | tr '\n' ' ')
    echo "$(grep -c . "$IOLAB_SKIPPED") tests were skipped. They need: ${lacking% }"
fi
exit $status

#!/bin/sh
# Make phases one after another, each whatever the one before said, and tell at the end how they went
# and which packages skipped tests lacked. The targets of a phase are made side by side.
#
#   phases.sh "TARGET ..." ...
set -u
trap 'exit 130' INT

# Tests add a line for each of them that is skipped, with the packages that it needs.
IOLAB_SKIPPED=$(mktemp) || exit 2
export IOLAB_SKIPPED
trap 'rm -f "$IOLAB_SKIPPED"' EXIT

told=""
status=0
for phase in "$@"; do
    echo "== $phase"
    began=$(date +%s)
    # shellcheck disable=SC2086 # the words of a phase are its targets
    set -- $phase
    together=""
    [ $# -eq 1 ] || together="--jobs=$# --output-sync=target"
    # shellcheck disable=SC2086
    if "${MAKE:-make}" --no-print-directory --keep-going $together "$@"; then
        outcome=passed
    else
        outcome=FAILED
        status=1
    fi
    told="$told$(printf '%-12s %-8s %4d s' "$phase" "$outcome" $(($(date +%s) - began)))
"
done
printf '\n%s' "$told"
if [ -s "$IOLAB_SKIPPED" ]; then
    lacking=$(tr ' ' '\n' <"$IOLAB_SKIPPED" | sort -u | tr '\n' ' ')
    echo "$(grep -c . "$IOLAB_SKIPPED") tests were skipped. They need: ${lacking% }"
fi
exit $status

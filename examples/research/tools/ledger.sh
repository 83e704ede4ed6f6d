#!/bin/sh
# What the world shows: a line `TOOL KEY` for each effect that was applied. Used by `lodestep test`.
set -eu
for report in "$LODESTEP_TEST_FOLDER"/reports/*.md; do
    [ -e "$report" ] || continue
    key=$(basename "$report" .md)
    echo "publish k1:${key#k1-}"
done
if [ -e "$LODESTEP_TEST_FOLDER/notified.log" ]; then
    while read -r key _; do
        echo "notify $key"
    done <"$LODESTEP_TEST_FOLDER/notified.log"
fi

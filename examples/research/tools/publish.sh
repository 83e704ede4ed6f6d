#!/bin/sh
# Publishes a report: one file per idempotency key. The same key again changes nothing.
# Reads {"body": "...", "title": "..."} on stdin; the folder to publish into is the first argument.
set -eu
export LC_ALL=C
reports="$1/reports"
name=$(printf %s "$LODESTEP_IDEMPOTENCY_KEY" | tr ':' '-')
mkdir -p "$reports"
if [ -e "$reports/$name.md" ]; then
    echo "published before under this key: $reports/$name.md"
    exit 0
fi
draft="$reports/.$name.$$"
trap 'rm -f "$draft"' EXIT

# Takes the string `body` out of the JSON object: its keys are sorted, so that it comes first.
awk '
    { text = text (NR > 1 ? "\n" : "") $0 }
    END {
        if (substr(text, 1, 9) != "{\"body\":\"") exit 1
        for (i = 10; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (c == "\"") exit 0
            if (c == "\\") {
                c = substr(text, ++i, 1)
                if (c == "n") c = "\n"
                else if (c == "t") c = "\t"
                else if (c == "r") c = "\r"
                else if (c == "b") c = "\b"
                else if (c == "f") c = "\f"
                else if (c == "u") { c = "?"; i += 4 }
            }
            printf "%s", c
        }
        exit 1
    }
' >"$draft"

# A link is made once: of two at the same time, one finds it there.
if ln "$draft" "$reports/$name.md" 2>/dev/null; then
    echo "published as $reports/$name.md"
else
    echo "published before under this key: $reports/$name.md"
fi

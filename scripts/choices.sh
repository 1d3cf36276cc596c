#!/bin/bash
# choices.sh NAME=FOLDER...: puts the answers of choices into docs/choosing.md, each in place of what stands between
# <!-- answer NAME --> and <!-- end -->: what it says, what it rests on, what all trials
# say where they were measured, what would change it, and a picture of its page.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/whole"
given=()
for c in "$@"; do given+=("${c%%=*}=$(realpath "${c#*=}")"); done
(cd web && SKERRY_CHOICES=$(IFS=,; echo "${given[*]}") SKERRY_SCREENS=$out npx --no-install vitest run --config vitest.browser.ts test/screens.spec.ts -t 'the answer')
for c in "${given[@]}"; do
	name=${c%%=*}
	cp "$out/answer-$name-1400-light.png" "docs/images/choice-$name.png"
	NAME=$name python3 - "${c#*=}/answer.json" <<'PYTHON'
import datetime, json, os, re, sys
name, answer = os.environ["NAME"], json.load(open(sys.argv[1]))
place = re.compile(rf"(<!-- answer {re.escape(name)} -->\n).*?(<!-- end -->)", re.S)
page = open("docs/choosing.md").read()
if not place.search(page):
    sys.exit(f"choices.sh: docs/choosing.md has no place for the answer {name}")
minutes = answer["spent_s"] / 60
day = datetime.date.fromtimestamp(os.path.getmtime(sys.argv[1]))
lines = [f"> {answer['sentence']}", "", f"{answer['trials']} trials in {minutes:.0f} minutes, {answer['void']} of which decided nothing ({day:%-d %B %Y}, {answer['machine']['cores']} cores)."]
grid = os.path.join(os.path.dirname(sys.argv[1]), "exhaustive.json")
if os.path.exists(grid):
    lines += ["", json.load(open(grid))["compared"]]
lines += [""] + [f"- {text}" for text in [answer.get("sure")] + answer.get("changes", []) if text]
told = answer.get("changes", [])
lines += [f"- {v['label']} is out: {v['why']}." for v in answer["candidates"] if v.get("out") == "failed" and not any(t.startswith(v["label"] + " would") for t in told)]
lines += ["", f"![The answer for {name}](images/choice-{name}.png)", ""]
open("docs/choosing.md", "w").write(place.sub(lambda m: m[1] + "\n".join(lines) + m[2], page))
PYTHON
done

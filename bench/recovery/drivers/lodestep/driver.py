"""Lodestep by its binary: an agent file with one tool, and a script that stands for the model.

Recovery as its documentation has it: the same `lodestep run` again. A doubt is answered with `lodestep resolve`.
The tool is `unsafe` for a plain receiver and `keyed` for one that knows keys.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", ".."))
AGENT = """format = 1

[agent]
name = "recovery"
objective = "Perform the steps in their order."

[model]
provider = "script"
name = "script.json"

[tools.act]
description = "Performs one step."
command = {command}
input = {{ type = "object", required = ["step"], properties = {{ step = {{ type = "integer" }} }} }}
class = "{kind}"

[[policy]]
tools = ["act"]
decide = "allow"
"""


def prepare():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    build = ["cargo", "build", "--release", "--jobs", "1", "-p", "lodestep-cli"]
    subprocess.run(build, cwd=ROOT, check=True, stdout=sys.stderr)
    program = os.path.join(target, "release", "lodestep")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    store = ["--store", "{trial}/.lodestep/lodestep.db"]
    run = [program, "run", "{trial}/agent.toml", *store]
    me = [sys.executable, os.path.abspath(__file__)]
    return {
        "name": "Lodestep",
        "version": version,
        "settings": {"as it ships": "SQLite, synchronous FULL; class unsafe, or keyed where the receiver knows keys"},
        "key": "Lodestep makes it and hands it to the tool",
        "lay": [*me, "lay", "{trial}"],
        "begin": run,
        "recover": run,
        "asks": 5,
        "doubts": [*me, "doubts", program, *store],
        "settle": [*me, "settle", program, "{doubt}", "{word}", *store],
    }


def lay(trial):
    with open(os.path.join(trial, "job.json")) as file:
        job = json.load(file)
    replies = [{"calls": [{"name": "act", "arguments": {"step": step}}]} for step in range(1, job["steps"] + 1)]
    replies.append({"calls": [{"name": "finish", "arguments": {"summary": "done"}}]})
    with open(os.path.join(trial, "script.json"), "w") as file:
        json.dump({"replies": replies}, file)
    kind = "keyed" if job["receiver"] == "keyed" else "unsafe"
    with open(os.path.join(trial, "agent.toml"), "w") as file:
        file.write(AGENT.format(command=json.dumps(job["effect"]), kind=kind))


def doubts(program, *store):
    listed = json.loads(subprocess.run([program, "todo", "--json", *store], check=True, capture_output=True).stdout)
    found = [entry for entry in listed if entry["kind"] == "in doubt"]
    # What is in doubt is told as `act step=3`.
    print(json.dumps([{"id": f"{it['run']} {it['action']}", "step": int(it["what"].split("step=")[1])} for it in found]))


def settle(program, doubt, word, *store):
    said = "--happened" if word == "happened" else "--retry"
    subprocess.run([program, "resolve", *doubt.split(), said, *store], check=True, stdout=subprocess.DEVNULL)


verb, rest = sys.argv[1], sys.argv[2:]
if verb == "prepare":
    print(json.dumps(prepare()))
else:
    {"lay": lay, "doubts": doubts, "settle": settle}[verb](*rest)

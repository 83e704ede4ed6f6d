"""Controls: what a script does without a runtime. They show that the scorer sees what is lost and what is doubled.

`record after` writes a step down once its effect is done, `record before` before it is begun. The first can only
double, the second can only lose.
"""

import json
import os
import subprocess
import sys


def describe():
    command = [sys.executable, os.path.abspath(__file__), "work", "{trial}", "{setting}"]
    return {
        "name": "script",
        "version": "control",
        "settings": {
            "record after": "a file of finished steps, fsync'd after each effect",
            "record before": "a file of begun steps, fsync'd before each effect",
        },
        "key": "the script makes it from run and step",
        "begin": command,
        "recover": command,
    }


def note(path, step):
    with open(path, "a") as file:
        file.write(f"{step}\n")
        file.flush()
        os.fsync(file.fileno())


def work(trial, setting):
    with open(os.path.join(trial, "job.json")) as file:
        job = json.load(file)
    path = os.path.join(trial, "steps")
    noted = set(open(path).read().split()) if os.path.exists(path) else set()
    for step in range(1, job["steps"] + 1):
        if str(step) in noted:
            continue
        if setting == "record before":
            note(path, step)
        subprocess.run([*job["effect"], str(step), f"{job['run']}:{step}"], check=True, stdout=subprocess.DEVNULL)
        if setting == "record after":
            note(path, step)


if sys.argv[1] == "prepare":
    print(json.dumps(describe()))
else:
    work(*sys.argv[2:])

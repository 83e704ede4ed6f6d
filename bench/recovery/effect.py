"""The outside world of a trial: one effect, and the receiver that applies it.

    effect.py TRIAL [STEP [KEY]]

TRIAL is the trial's folder. Without STEP, the step stands in a JSON object on stdin (`{"step": 3}`) and the key in
LODESTEP_IDEMPOTENCY_KEY, as a tool of Lodestep gets them. Applied is what has a line in TRIAL/ledger, on the disk:
`step process monotonic-nanoseconds key`. A plain receiver writes a line for whatever is sent; a keyed one writes none
for a key that has one, and answers as it did the first time.

TRIAL/hold.json, `{"step": 3, "when": "before"}`, makes the effect of that step stand still once, before or after it is
applied: it writes TRIAL/held and waits for the kill. It knows nothing of what calls it.
"""

import fcntl
import json
import os
import sys
import time

HELD_S = 120  # an effect that nobody kills ends by itself


def durable(path, text, mode="a"):
    with open(path, mode) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def hold(trial, step, when):
    path = os.path.join(trial, "hold.json")
    try:
        with open(path) as file:
            wanted = json.load(file)
    except FileNotFoundError:
        return
    if (wanted["step"], wanted["when"]) != (step, when):
        return
    os.remove(path)
    durable(os.path.join(trial, "held.part"), str(os.getpid()), "w")
    os.rename(os.path.join(trial, "held.part"), os.path.join(trial, "held"))
    time.sleep(HELD_S)
    sys.exit("nobody came to kill it")


def apply(trial, step, key, keyed):
    with open(os.path.join(trial, "receiver.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ledger = os.path.join(trial, "ledger")
        if keyed:
            if key == "-":
                sys.exit("a keyed receiver needs a key")
            if os.path.exists(ledger):
                with open(ledger) as file:
                    if any(line.split()[3] == key for line in file):
                        return
        durable(ledger, f"{step} {os.getpid()} {time.monotonic_ns()} {key}\n")


def main():
    trial = sys.argv[1]
    if len(sys.argv) > 2:
        step, key = int(sys.argv[2]), (sys.argv[3:] or ["-"])[0]
    else:
        step, key = json.load(sys.stdin)["step"], os.environ.get("LODESTEP_IDEMPOTENCY_KEY") or "-"
    with open(os.path.join(trial, "job.json")) as file:
        job = json.load(file)
    open(os.path.join(trial, "begun"), "a").close()
    hold(trial, step, "before")
    apply(trial, step, key, job["receiver"] == "keyed")
    hold(trial, step, "after")
    print(f"applied {step}")


main()

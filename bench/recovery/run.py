"""The recovery scorecard: kills runtimes in the middle of a small job and counts its effects from outside.

    python3 bench/recovery/run.py                        every driver
    python3 bench/recovery/run.py lodestep dbos          some of them
    python3 bench/recovery/run.py --table                the table of what was measured already

README.md beside this file has the protocol, the moments and the words. It needs Python 3.11 and nothing else; what a
driver needs goes into a folder of its own below target/recovery, and so do the results.
"""

import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
HOME = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "recovery")
DRIVERS = ["lodestep", "agentplane", "dbos", "langgraph", "control"]
RECEIVERS = ["plain", "keyed"]
MOMENTS = ["before", "after", "random"]
MISSES = 20  # so many trials in a row that ended before their kill end a cell
ROUNDS = 20  # so many answers of a person at most in one trial


class Fault(Exception):
    """A trial that could not be made. It is no result of what is tried."""


def fill(words, **values):
    """A command of a driver with its `{trial}`, `{setting}`, `{doubt}` and `{word}` filled in."""
    return [re.sub(r"\{(\w+)\}", lambda name: values[name[1]], word) for word in words]


class Trial:
    """One folder in which one job is begun, killed once and recovered."""

    def __init__(self, folder, driver, setting, receiver, options):
        self.folder, self.driver, self.setting, self.options = folder, driver, setting, options
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        effect = [sys.executable, "-IS", os.path.join(HERE, "effect.py"), folder]
        job = {"run": "job-1", "steps": options.steps, "receiver": receiver, "effect": effect}
        with open(self.path("job.json"), "w") as file:
            json.dump(job, file)
        if "lay" in driver:
            subprocess.run(self.command("lay"), check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, verb, doubt="", word=""):
        return fill(self.driver[verb], trial=self.folder, setting=self.setting, doubt=doubt, word=word)

    def spawn(self, verb, **values):
        with open(self.path("output"), "a") as output:
            output.write(f"== {verb} {values}\n")
            output.flush()
            command = self.command(verb, **values)
            quiet = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            return subprocess.Popen(command, cwd=self.folder, start_new_session=True, **quiet)

    def finish(self, process):
        """Waits for a process and returns its exit code, or None when the time is over."""
        try:
            return process.wait(self.options.limit)
        except subprocess.TimeoutExpired:
            kill(process)
            return None

    def lines(self):
        """The ledger: a list of (step, monotonic seconds) in the order of the lines."""
        if not os.path.exists(self.path("ledger")):
            return []
        with open(self.path("ledger")) as file:
            return [(int(line.split()[0]), int(line.split()[2]) / 1e9) for line in file]

    def undisturbed(self):
        """Runs the job without a kill. Returns seconds from start to end, and from the first effect's start to the end."""
        start = time.monotonic()
        process = self.spawn("begin")
        until(lambda: os.path.exists(self.path("begun")) or process.poll() is not None, self.options.limit)
        first = time.monotonic()
        code = self.finish(process)
        steps = [step for step, _ in self.lines()]
        if code != 0 or steps != list(range(1, self.options.steps + 1)):
            raise Fault(f"undisturbed, it ended with {code} and the effects {steps}; see {self.path('output')}")
        return time.monotonic() - start, time.monotonic() - first

    def kill_held(self, step, when):
        """Begins the job and kills it while the effect of that step stands still. Returns whether it came to that."""
        with open(self.path("hold.json"), "w") as file:
            json.dump({"step": step, "when": when}, file)
        process = self.spawn("begin")
        until(lambda: os.path.exists(self.path("held")) or process.poll() is not None, self.options.limit)
        is_held = os.path.exists(self.path("held"))
        kill(process)
        return is_held

    def kill_later(self, seconds):
        """Begins the job and kills it so long after its first effect began. Returns whether it was still under way."""
        process = self.spawn("begin")
        until(lambda: os.path.exists(self.path("begun")) or process.poll() is not None, self.options.limit)
        time.sleep(seconds)
        is_running = process.poll() is None
        kill(process)
        return is_running

    def recover(self):
        """Restarts until the job is finished, answering from the ledger when a person is asked. Returns the result."""
        known = {step for step, _ in self.lines()}
        start = time.monotonic()
        asked, asked_at, code = 0, None, None
        for _ in range(ROUNDS):
            code = self.finish(self.spawn("recover"))
            if code is None or code != self.driver.get("asks"):
                break
            asked_at = asked_at or time.monotonic() - start
            asked += self.answer()
        end = time.monotonic()
        steps = [step for step, _ in self.lines()]
        later = [at for step, at in self.lines() if at > start and step not in known]
        missing = sum(steps.count(step) == 0 for step in range(1, self.options.steps + 1))
        return {
            "finished": code == 0,
            "lost": missing if code == 0 else 0,
            "doubled": sum(steps.count(step) > 1 for step in range(1, self.options.steps + 1)),
            "asked": asked,
            "asked_s": asked_at,
            "next_effect_s": later[0] - start if later else None,
            "finish_s": end - start if code == 0 else None,
        }

    def answer(self):
        """Says of each doubt what the ledger says. Returns how many there were."""
        listed = json.loads(subprocess.run(self.command("doubts"), check=True, capture_output=True).stdout)
        if not listed:
            raise Fault(f"it asks a person and names nothing; see {self.path('output')}")
        steps = {step for step, _ in self.lines()}
        for doubt in listed:
            word = "happened" if doubt["step"] in steps else "retry"
            # It may go on with the job itself, and then be in doubt again: the next round sees.
            self.finish(self.spawn("settle", doubt=doubt["id"], word=word))
        return len(listed)

    def close(self):
        """Ends an effect that is left standing, and takes the folder away."""
        if os.path.exists(self.path("held")):
            with open(self.path("held")) as file:
                pid = int(file.read())
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    is_ours = self.folder in file.read()
            except OSError:
                is_ours = False
            if is_ours:
                os.kill(pid, signal.SIGKILL)
        if not self.options.keep:
            shutil.rmtree(self.folder)


def kill(process):
    """kill -9 to the process and all of its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def until(holds, limit_s):
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            return
        time.sleep(0.001)


def measure(name, options):
    """All cells of one driver."""
    program = [sys.executable, os.path.join(HERE, "drivers", name, "driver.py"), "prepare"]
    env = os.path.join(HOME, "env", name)
    os.makedirs(env, exist_ok=True)
    driver = json.loads(subprocess.run([*program, env], check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    cells = []
    for setting in driver["settings"]:
        if options.setting and setting not in options.setting:
            continue
        for receiver in RECEIVERS:
            cells += measure_settled(name, driver, setting, receiver, options)
    return {
        "driver": name,
        **{word: driver[word] for word in ("name", "version", "settings", "key")},
        "date": datetime.date.today().isoformat(),
        "seed": options.seed,
        "steps": options.steps,
        "trials": options.trials,
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "cells": cells,
    }


def measure_settled(name, driver, setting, receiver, options):
    """The cells of one driver in one setting with one receiver: one for each moment."""

    def new(label):
        place = re.sub(r"\W+", "-", f"{name}-{setting}-{receiver}-{label}")
        return Trial(os.path.join(HOME, "trials", place), driver, setting, receiver, options)

    spans = []
    for number in range(3):
        trial = new(f"undisturbed-{number}")
        spans.append(trial.undisturbed())
        trial.close()
    whole, acting = (statistics.median(span) for span in zip(*spans))
    cells = []
    for moment in MOMENTS:
        # One seed a cell, so that a cell draws the same whatever is measured beside it.
        chance = random.Random(f"{options.seed} {name} {setting} {receiver} {moment}")
        results, misses = [], 0
        while len(results) < options.trials and misses < MISSES:
            trial = new(f"{moment}-{len(results)}")
            if moment == "random":
                is_hit = trial.kill_later(chance.uniform(0, acting))
            else:
                is_hit = trial.kill_held(chance.randint(1, options.steps), moment)
            if is_hit:
                results.append(trial.recover())
            misses = 0 if is_hit else misses + 1
            trial.close()
        if moment != "random" and len(results) < options.trials:
            raise Fault(f"{name}, {setting}: the effect was never held {moment} it was applied")
        cell = {"setting": setting, "receiver": receiver, "moment": moment, "undisturbed_s": whole}
        cell |= {"acting_s": acting, "results": results}
        cells.append(cell)
        print(f"{name}, {setting}, {receiver}, {moment}: {told(cell)}", file=sys.stderr, flush=True)
    return cells


def told(cell):
    """What a cell of the table says."""
    results = cell["results"]
    total = {word: sum(result[word] for result in results) for word in ("lost", "doubled", "asked")}
    said = " / ".join(str(total[word]) for word in total)
    stuck = sum(not result["finished"] for result in results)
    return said + (f", {stuck} not finished" if stuck else "")


def seconds(results, word):
    values = [result[word] for result in results if result[word] is not None]
    return f"{statistics.median(values):.2f}" if values else "–"


def table(measured):
    """The results as Markdown, a row for each driver and setting."""
    lines = []
    for receiver in RECEIVERS:
        lines += [f"{receiver} receiver: effects lost / doubled / asked about", ""]
        lines += ["| | before | after | random | next effect, s | finished, s | undisturbed, s |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for one in measured:
            for setting in one["settings"]:
                cells = {
                    cell["moment"]: cell
                    for cell in one["cells"]
                    if (cell["setting"], cell["receiver"]) == (setting, receiver)
                }
                if set(cells) != set(MOMENTS):
                    continue
                results = [result for moment in ("before", "after") for result in cells[moment]["results"]]
                row = [f"{one['name']} {one['version']}, {setting}", *(told(cells[moment]) for moment in MOMENTS)]
                row += [seconds(results, "next_effect_s"), seconds(results, "finish_s")]
                row += [f"{cells['after']['undisturbed_s']:.2f}"]
                lines.append(f"| {' | '.join(row)} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Kills runtimes in the middle of a job and counts its effects.")
    parser.add_argument("drivers", nargs="*", help=f"which, of {', '.join(DRIVERS)}; all when none is named")
    parser.add_argument("--trials", type=int, default=10, help="for each cell; 10")
    parser.add_argument("--steps", type=int, default=6, help="of the job; 6")
    parser.add_argument("--seed", type=int, default=1, help="of the steps and moments of the kills; 1")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one command may take; 120")
    parser.add_argument("--setting", action="append", help="only this setting of the drivers")
    parser.add_argument("--keep", action="store_true", help="keep the trials' folders")
    parser.add_argument("--table", action="store_true", help="measure nothing; print the table of the last results")
    options = parser.parse_args()
    unknown = set(options.drivers) - set(DRIVERS)
    if unknown:
        parser.error(f"no driver is called {', '.join(sorted(unknown))}; there are {', '.join(DRIVERS)}")
    results = os.path.join(HOME, "results")
    os.makedirs(results, exist_ok=True)
    chosen = options.drivers or DRIVERS
    if not options.table:
        for name in chosen:
            try:
                measured = measure(name, options)
            except (Fault, subprocess.CalledProcessError) as fault:
                print(f"{name} could not be tried: {fault}", file=sys.stderr)
                continue
            with open(os.path.join(results, f"{name}.json"), "w") as file:
                json.dump(measured, file, indent=1)
    measured = []
    for name in chosen:
        if os.path.exists(os.path.join(results, f"{name}.json")):
            with open(os.path.join(results, f"{name}.json")) as file:
                measured.append(json.load(file))
    print(table(measured))


main()

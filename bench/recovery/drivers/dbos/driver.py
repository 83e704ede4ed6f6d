"""DBOS Transact for Python on SQLite, the store that it takes when none is named.

Recovery as its documentation has it: the same program is started again; `DBOS.launch()` recovers the workflows that
were under way, and a workflow that is started under an id that exists is not started twice.
"""

import json
import os
import subprocess
import sys

VERSION = "3.4.0"


def prepare(env):
    python = os.path.join(env, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", env], check=True, stdout=sys.stderr)
    subprocess.run([python, "-m", "pip", "install", "-q", f"dbos=={VERSION}"], check=True, stdout=sys.stderr)
    command = [python, os.path.abspath(__file__), "work", "{trial}"]
    return {
        "name": "DBOS Python",
        "version": VERSION,
        "settings": {"as it ships": "system database sqlite, no option but the admin server, which is off"},
        "key": "the step makes it from DBOS.workflow_id and DBOS.step_id",
        "begin": command,
        "recover": command,
    }


def work(trial):
    from dbos import DBOS, SetWorkflowID

    with open(os.path.join(trial, "job.json")) as file:
        job = json.load(file)

    @DBOS.step()
    def act(step):
        key = f"{DBOS.workflow_id}:{DBOS.step_id}"
        subprocess.run([*job["effect"], str(step), key], check=True, stdout=subprocess.DEVNULL)

    @DBOS.workflow()
    def steps(count):
        for step in range(1, count + 1):
            act(step)

    database = os.path.join(os.path.abspath(trial), "dbos.sqlite")
    DBOS(config={"name": "recovery", "system_database_url": f"sqlite:///{database}", "run_admin_server": False})
    DBOS.launch()
    with SetWorkflowID(job["run"]):
        handle = DBOS.start_workflow(steps, job["steps"])
    handle.get_result()
    DBOS.destroy()


if sys.argv[1] == "prepare":
    print(json.dumps(prepare(sys.argv[2])))
else:
    work(sys.argv[2])

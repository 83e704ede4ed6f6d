"""LangGraph with its SQLite checkpointer: a graph of one node that is entered once a step, with one effect in it.

Recovery as its documentation has it: the graph is invoked again with the same thread id and `None` as its input, which
goes on from the last checkpoint.
"""

import json
import os
import subprocess
import sys

VERSIONS = {"langgraph": "1.2.24", "langgraph-checkpoint-sqlite": "3.1.2"}


def prepare(env):
    python = os.path.join(env, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", env], check=True, stdout=sys.stderr)
    wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, stdout=sys.stderr)
    command = [python, os.path.abspath(__file__), "work", "{trial}", "{setting}"]
    return {
        "name": "LangGraph",
        "version": f"{VERSIONS['langgraph']}, SqliteSaver {VERSIONS['langgraph-checkpoint-sqlite']}",
        "settings": {
            "as it ships": "SqliteSaver, durability \"async\"",
            "sync": "SqliteSaver, durability \"sync\", the safest",
        },
        "key": "the node makes it from thread id and step",
        "begin": command,
        "recover": command,
    }


def work(trial, setting):
    from typing import TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    with open(os.path.join(trial, "job.json")) as file:
        job = json.load(file)

    class State(TypedDict):
        step: int

    def act(state: State):
        step = state["step"] + 1
        subprocess.run([*job["effect"], str(step), f"{job['run']}:{step}"], check=True, stdout=subprocess.DEVNULL)
        return {"step": step}

    graph = StateGraph(State)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", lambda state: "act" if state["step"] < job["steps"] else END)
    with SqliteSaver.from_conn_string(os.path.join(trial, "langgraph.sqlite")) as saver:
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": job["run"]}}
        # `next` of a state doesn't say whether the graph is done: it is empty as well while the writes of a node are
        # stored and the checkpoint behind them is not. A finished graph takes `None` and does nothing.
        given = {"step": 0} if app.get_state(config).created_at is None else None
        if setting == "sync":
            app.invoke(given, config, durability="sync")
        else:
            app.invoke(given, config)


if sys.argv[1] == "prepare":
    print(json.dumps(prepare(sys.argv[2])))
else:
    work(*sys.argv[2:])

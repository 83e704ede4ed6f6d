"""agentplane on its embedded store: a program of one skill, `main.rs`, in a cargo project of its own."""

import json
import os
import shutil
import subprocess
import sys

VERSION = "0.57.0"
MANIFEST = f"""[package]
name = "recovery-agentplane"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
agentplane = "={VERSION}"
async-trait = "0.1"
serde_json = "1"
tokio = {{ version = "1", features = ["macros", "process", "rt-multi-thread", "time"] }}

[workspace]
"""


def prepare(env):
    os.makedirs(os.path.join(env, "src"), exist_ok=True)
    with open(os.path.join(env, "Cargo.toml"), "w") as file:
        file.write(MANIFEST)
    here = os.path.dirname(os.path.abspath(__file__))
    shutil.copy(os.path.join(here, "main.rs"), os.path.join(env, "src", "main.rs"))
    target = os.path.join(env, "target")
    build = ["cargo", "build", "--release", "--jobs", "1"]
    subprocess.run(build, cwd=env, env={**os.environ, "CARGO_TARGET_DIR": target}, check=True, stdout=sys.stderr)
    program = os.path.join(target, "release", "recovery-agentplane")
    return {
        "name": "agentplane",
        "version": VERSION,
        "settings": {"as it ships": "redb, immediate durability"},
        "key": "the effect declares it, made from run and step",
        "begin": [program, "work", "{trial}"],
        "recover": [program, "work", "{trial}"],
        "asks": 5,
        "doubts": [program, "doubts", "{trial}"],
        "settle": [program, "settle", "{trial}", "{doubt}", "{word}"],
    }


print(json.dumps(prepare(sys.argv[2])))

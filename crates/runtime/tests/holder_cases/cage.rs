//! What a tool is kept from, tried by programs that want to get at it (G10).

use std::fs;

use lodestep::process::Demand;

use super::*;

/// What only someone who can read the store knows.
const CANARY: &str = "known-to-the-store-only";

/// A store's files as they lie on the disk: in a folder of their own, and among others.
struct Stored {
    _temp: tempfile::TempDir,
    agent: PathBuf,
}

impl Stored {
    fn new() -> Self {
        let temp = tempfile::tempdir().expect("a folder");
        let agent = fs::canonicalize(temp.path()).expect("a path").join("agent");
        for name in
            [".lodestep/db", ".lodestep/db-files/values/v", "among.db", "among.db-wal", "among.db-files/values/v"]
        {
            let path = agent.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, CANARY).expect("written");
        }
        Stored { _temp: temp, agent }
    }

    fn cage(&self, demand: Demand) -> Cage {
        let names = [".lodestep", "among.db-files", "among.db", "among.db-wal", "among.db-shm"];
        Cage { keep_out: names.map(|name| self.agent.join(name)).into(), demand }
    }

    /// Every file below the agent's folder with its text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let (mut found, mut folders) = (Vec::new(), vec![self.agent.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                if entry.file_type().expect("a type").is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), fs::read_to_string(entry.path()).expect("read")));
                }
            }
        }
        found.sort();
        found
    }

    fn shell(&self, script: &str, demand: Demand) -> Output {
        let mut command = shell(script);
        command.cwd = self.agent.clone();
        command.cage = self.cage(demand);
        run(command)
    }
}

/// Why this machine offers no cage for a store in the tool's own folder; then what is said of that is looked at instead.
fn without_a_cage(stored: &Stored) -> Option<String> {
    let fault = block_on(holder().cage_fault(stored.cage(Demand::Required), &stored.agent));
    if let Some(why) = &fault {
        eprintln!("no cage on this machine, so that only the refusal is shown: {why}");
        let refused = stored.shell("echo ran", Demand::Required);
        assert!(matches!(&refused.ended, Ended::NotStarted(why) if why.contains("no cage")), "{refused:?}");
        let ran = stored.shell("echo ran", Demand::BestEffort);
        assert_eq!((ran.ended, ran.stdout), (Ended::Exited(0), b"ran\n".to_vec()));
    }
    fault
}

pub fn a_tool_can_neither_read_nor_change_the_store() {
    let stored = Stored::new();
    if without_a_cage(&stored).is_some() {
        return;
    }
    let before = stored.files();
    for script in [
        "cat .lodestep/db among.db among.db-wal among.db-files/values/v",
        "grep -r . .lodestep among.db*",
        "ln -s .lodestep link; cat link/db; rm link",
        "cd .lodestep; cat db; cat ../agent/.lodestep/db",
        "cat /proc/self/root$PWD/.lodestep/db",
        // Through the eyes of processes outside: the holder, and the first of all.
        "cat /proc/$PPID/root$PWD/.lodestep/db /proc/1/root$PWD/.lodestep/db",
        "cat /proc/$PPID/cwd/$PWD/among.db",
        "for fd in /proc/$PPID/fd/*; do timeout 1 cat $fd; done",
        "nsenter -t $PPID -m cat $PWD/among.db",
        "ln among.db other; cat other; rm other",
        "ln .lodestep/db other; cat other; rm other",
        "umount .lodestep among.db; umount -l .lodestep; cat .lodestep/db among.db",
        "mkdir m; mount --bind . m; cat m/among.db; rmdir m",
        "unshare -m sh -c 'umount .lodestep; cat .lodestep/db'",
        "unshare -Urm sh -c 'umount .lodestep; cat .lodestep/db'",
        "mount -o remount,rw .lodestep; echo x >.lodestep/new",
        "echo x >.lodestep/db; echo x >>among.db; : >among.db; truncate -s 0 among.db among.db-wal",
        "echo x >.lodestep/new; mkdir .lodestep/folder; echo x >among.db-files/values/v",
        "rm -rf .lodestep among.db among.db-files",
        "mv .lodestep away; mv among.db away; mv among.db-files away",
        "echo x >n; mv n among.db; rm -f n",
        "chmod 777 .lodestep among.db; chown 1:1 among.db",
    ] {
        let output = stored.shell(script, Demand::Required);
        assert!(matches!(output.ended, Ended::Exited(_)), "{script}: {output:?}");
        let said = [output.stdout, output.stderr].concat();
        assert!(!contains(&said, CANARY), "{script}: {}", String::from_utf8_lossy(&said));
        assert_eq!(stored.files(), before, "{script}");
    }
}

pub fn what_is_beside_the_store_can_be_used_as_ever() {
    let stored = Stored::new();
    fs::create_dir(stored.agent.join("old")).expect("made");
    for (script, says) in [
        ("mkdir -p out/reports && echo made >out/reports/r && mv out/reports/r out/r && cat out/r", "made"),
        ("echo moved >old/a && mkdir fresh && mv old/a fresh/a && ln fresh/a old/b && cat old/b", "moved"),
        ("file=$(mktemp) && echo temporary >$file && cat $file && rm $file", "temporary"),
        ("(echo piped; sleep 0) | cat & wait; sleep 60 & kill $! && echo done", "piped\ndone"),
        ("python3 -c 'import tempfile, subprocess; print(subprocess.run([\"true\"]).returncode)'", "0"),
        ("git init -q repository && cd repository && git status --short && git rev-parse --git-dir", ".git"),
        ("test -r /dev/urandom && echo x >/dev/null && id -u >/dev/null && ls >/dev/null && echo seen", "seen"),
    ] {
        let output = stored.shell(script, Demand::BestEffort);
        assert_eq!(output.ended, Ended::Exited(0), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), says, "{script}");
    }
}

pub fn a_required_cage_that_can_t_be_is_not_started() {
    let stored = Stored::new();
    let mut command = shell("echo ran >ran");
    command.cwd = stored.agent.clone();
    command.cage = Cage { keep_out: vec![stored.agent.join("nowhere")], demand: Demand::Required };
    let output = run(command.clone());
    assert!(matches!(&output.ended, Ended::NotStarted(why) if why.contains("no cage")), "{output:?}");
    assert!(!stored.agent.join("ran").exists());
    command.cage.demand = Demand::BestEffort;
    assert_eq!(run(command).ended, Ended::Exited(0));
    assert!(stored.agent.join("ran").exists());
}

pub fn a_tool_gains_no_rights_and_leaves_no_core() {
    let output = run(shell("grep NoNewPrivs /proc/self/status; ulimit -c; ulimit -Hc"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "NoNewPrivs:\t1\n0\n0\n");
}

pub fn a_tool_can_neither_read_nor_end_who_holds_it() {
    let stored = Stored::new();
    if without_a_cage(&stored).is_some() {
        return;
    }
    let script = "cat /proc/$PPID/environ /proc/$PPID/maps && echo read; echo end";
    let output = stored.shell(script, Demand::Required);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n");
    let output = stored.shell("kill -KILL $PPID && echo killed; echo end", Demand::Required);
    // Only a kernel of 6.12 or later keeps signals from leaving.
    let is_kept = output.stdout == b"end\n" && output.ended == Ended::Exited(0);
    assert!(is_kept || matches!(output.ended, Ended::HolderLost(_)), "{output:?}");
}

pub fn a_tool_can_t_read_the_environment_of_another() {
    let stored = Stored::new();
    if without_a_cage(&stored).is_some() {
        return;
    }
    let marker = marker();
    let mut other = shell(&format!("exec sleep {marker}"));
    other.cage = stored.cage(Demand::Required);
    other.env.insert("SECRET".into(), CANARY.into());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let under_way = std::thread::spawn(move || {
        block_on(holder().run(other, async {
            let _ = stopped.await;
        }))
    });
    wait_for("the other tool", PATIENCE, || alive(&marker) > 0);
    let looked = stored.shell("cat /proc/[0-9]*/environ 2>/dev/null; echo end", Demand::Required);
    assert!(alive(&marker) > 0, "the other was gone before it was looked at");
    stop.send(()).expect("it waits");
    assert_eq!(under_way.join().expect("no panic").ended, Ended::Stopped);
    assert!(contains(&looked.stdout, "end") && !contains(&looked.stdout, CANARY), "{looked:?}");
}

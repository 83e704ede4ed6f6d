//! TOL-13: input and output of any size.

use super::*;

pub fn ten_megabytes_on_both_streams() {
    const BYTES: usize = 10 << 20;
    let output = run(shell(&format!("head -c {BYTES} /dev/zero >&2 & head -c {BYTES} /dev/zero | tr '\\0' x; wait")));
    assert_eq!((output.ended, output.stdout_truncated, output.stderr_truncated), (Ended::Exited(0), None, None));
    assert_eq!((output.stdout.len(), output.stderr.len()), (BYTES, BYTES));
    assert!(output.stdout.iter().all(|&byte| byte == b'x') && output.stderr.iter().all(|&byte| byte == 0));
}

pub fn output_above_the_limit_is_counted() {
    const BYTES: u64 = 200 << 20;
    let mut command = shell(&format!("head -c {BYTES} /dev/zero; grep VmHWM /proc/$PPID/status >&2"));
    command.stdout_limit = 1000;
    let output = run(command);
    assert_eq!((output.ended, output.stdout.len(), output.stdout_truncated), (Ended::Exited(0), 1000, Some(BYTES)));
    let peak = String::from_utf8_lossy(&output.stderr).into_owned();
    let kibibytes: u64 = peak.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a size");
    assert!(kibibytes < 32 * 1024, "the holder took {kibibytes} KiB");
    for (limit, truncated) in [(0, Some(3)), (2, Some(3)), (3, None), (4, None)] {
        let mut command = shell("printf abc >&2");
        command.stderr_limit = limit;
        let output = run(command);
        assert_eq!((output.stderr.len() as u64, output.stderr_truncated), (limit.min(3), truncated), "limit {limit}");
    }
}

pub fn unread_standard_input_hangs_nothing() {
    for script in ["exit 5", "exec 0</dev/null; exit 5", "head -c 10 >/dev/null; exit 5"] {
        let mut command = shell(script);
        command.stdin = vec![b'x'; 1 << 20];
        assert_eq!(run(command).ended, Ended::Exited(5), "{script}");
    }
}

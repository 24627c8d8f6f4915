//! Tests of `regatta device deploy` at a terminal, with a real sshd and sudo: its prompts, their echo, and the state of the
//! terminal afterwards. Each stops before a board is changed; `deploy.rs` tests deployments.

use std::{fs, os::unix::process::ExitStatusExt as _, process::Command};

use regatta_tests::{
    deploy_lab::{BOAT, DeployLab},
    sshd::{Likeness, PASSWORD, Sshd},
    succeed_output,
    terminal::Terminal,
};

/// `regatta device deploy --dry-run` at a terminal.
fn deploy(deploy_lab: &DeployLab, sshd: &Sshd, more: &[&str]) -> Terminal {
    let mut command = deploy_lab.bare(BOAT, sshd);
    command.arg("--dry-run").args(more);
    Terminal::start(&command)
}

/// Answers a question whose answer is not shown.
fn answer(terminal: &mut Terminal, question: &str, secret: &str) {
    terminal.wait_for(question);
    terminal.wait_until_hidden();
    terminal.type_in(&format!("{secret}\n"));
}

/// Asserts that it ended with code 0, restored the terminal and never showed a secret.
fn assert_would_install(mut terminal: Terminal, what: &str) {
    terminal.wait_for(&format!("would copy and install {what}"));
    let status = terminal.end();
    let shown = terminal.shown();
    assert!(status.success() && terminal.is_in_order(), "{status}\n{shown}");
    assert!(
        !shown.contains(PASSWORD) && !shown.contains("wrong one"),
        "{shown}"
    );
}

#[test]
fn an_unknown_host_key_needs_consent_and_a_password_stays_hidden() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let known_hosts = deploy_lab.home().join(".ssh/known_hosts");
    let fingerprint = sshd.fingerprint();

    // Neither Enter nor "y" accepts an unknown host.
    let mut refused = deploy(&deploy_lab, &sshd, &[]);
    refused.wait_for(&format!("Its ssh-ed25519 key is {fingerprint}"));
    refused.wait_for("yes/no: ");
    refused.type_in("y\n");
    refused.wait_for("yes, no, or the fingerprint");
    refused.type_in("no\n");
    refused.wait_for("was not accepted");
    assert_eq!(refused.end().code(), Some(3), "{}", refused.shown());
    assert!(refused.is_in_order() && !known_hosts.exists());

    // Ctrl-C at the prompt for a password ends the command and restores the terminal.
    let mut left = deploy(&deploy_lab, &sshd, &[]);
    left.wait_for("yes/no: ");
    left.type_in(&format!("{fingerprint}\n"));
    left.wait_for("password of sailor@127.0.0.1");
    left.wait_until_hidden();
    left.type_in("half a pass\x03");
    assert_eq!(left.end().signal(), Some(2), "{}", left.shown());
    assert!(left.is_in_order(), "{}", left.shown());
    assert!(!left.shown().contains("half a pass"), "{}", left.shown());

    // The host is known from here on. After a wrong password there is another prompt; erased letters do not count.
    let mut terminal = deploy(&deploy_lab, &sshd, &[]);
    answer(&mut terminal, "password of sailor@127.0.0.1", "wrong one");
    answer(&mut terminal, "wrong; password of", &format!("x\x7f{PASSWORD}"));
    assert_would_install(terminal, "the archive");

    // All answers are wrong.
    let mut terminal = deploy(&deploy_lab, &sshd, &[]);
    for question in ["password of", "wrong; password of", "wrong; password of"] {
        answer(&mut terminal, question, "wrong one");
    }
    terminal.wait_for("refuses the login");
    terminal.wait_for("the password, which is wrong");
    assert_eq!(terminal.end().code(), Some(3));
}

#[test]
fn a_host_that_ends_the_login_is_distinguished_from_one_that_refuses_it() {
    let Some(sshd) = Sshd::start(Likeness {
        config: "MaxAuthTries 1\n",
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let fingerprint = sshd.fingerprint();
    let mut terminal = deploy(&deploy_lab, &sshd, &["--accept-host-key", &fingerprint]);
    answer(&mut terminal, "password of sailor@127.0.0.1", "wrong one");
    terminal.wait_for("has ended the connection before the login: ");
    assert_eq!(terminal.end().code(), Some(3), "{}", terminal.shown());
    assert!(terminal.is_in_order(), "{}", terminal.shown());
}

#[test]
fn the_passphrase_of_a_key_is_requested() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let key = deploy_lab.path().join("key");
    let phrase = "eight bells and all is well";
    let mut keygen = Command::new("ssh-keygen");
    let _ = succeed_output(keygen.args(["-q", "-t", "ed25519", "-N", phrase, "-f"]).arg(&key));
    sshd.let_in(&key);
    let fingerprint = sshd.fingerprint();
    let name = key.to_str().unwrap();
    let words = ["--accept-host-key", &fingerprint, "--identity", name];

    let mut terminal = deploy(&deploy_lab, &sshd, &words);
    answer(&mut terminal, &format!("phrase of the key {name}: "), "wrong one");
    answer(&mut terminal, "wrong; phrase of the key", phrase);
    assert_would_install(terminal, "the archive");

    // Without its passphrase the key cannot be used, so the client asks for the password.
    let mut terminal = deploy(&deploy_lab, &sshd, &words);
    answer(&mut terminal, "phrase of the key", "");
    answer(&mut terminal, "password of", "");
    terminal.wait_for(&format!("tried: the key {name} without its phrase"));
    terminal.wait_for("no password, because none was entered");
    assert_eq!(terminal.end().code(), Some(3));
}

#[test]
fn sudo_gets_its_password() {
    let Some(sshd) = Sshd::start(Likeness {
        sudo: true,
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let (fingerprint, key) = (sshd.fingerprint(), sshd.key());
    let known = ["--accept-host-key", &fingerprint];

    // By key into the board, by password to root; the third try is the last.
    let by_key = [&known[..], &["--identity", key.to_str().unwrap()]].concat();
    let mut terminal = deploy(&deploy_lab, &sshd, &by_key);
    answer(&mut terminal, "sudo password of sailor@127.0.0.1", "wrong one");
    answer(&mut terminal, "wrong; sudo password", PASSWORD);
    assert_would_install(terminal, "the Debian package");

    // The password of the login is also used for sudo.
    let mut terminal = deploy(&deploy_lab, &sshd, &known);
    answer(&mut terminal, "password of sailor@127.0.0.1", PASSWORD);
    answer(&mut terminal, "sudo password of", "");
    assert_would_install(terminal, "the Debian package");

    let mut terminal = deploy(&deploy_lab, &sshd, &by_key);
    answer(&mut terminal, "sudo password of", "");
    terminal.wait_for("sudo on the board requires a password: none was entered");
    assert_eq!(terminal.end().code(), Some(3));

    // Without sudo rights, the agent is installed for the user alone, and the command says so.
    fs::write(sshd.sudoers(), "root ALL=(ALL) ALL\n").unwrap();
    let mut terminal = deploy(&deploy_lab, &sshd, &by_key);
    answer(&mut terminal, "sudo password of", PASSWORD);
    terminal.wait_for("sudo is not for this login: for this user alone, then");
    terminal.wait_for("the archive, for this user");
    assert!(terminal.end().success());
}

//! Configurations as users have them.

use proptest::prelude::*;

use super::*;

fn wt310() -> ServerConf {
    let analyzer = AnalyzerConf {
        device_type: 49,
        device_port: "/dev/usbtmc0".to_owned(),
        ..AnalyzerConf::default()
    };
    ServerConf::new("ntp.example.com", "/opt/ptd/ptd-linux-x86", analyzer)
}

#[test]
fn rendered_server_conf_passes_lint() {
    let text = wt310().render().unwrap();
    assert_eq!(
        text,
        "[server]\nntpServer: ntp.example.com\nlisten: 0.0.0.0 4950\n\n[ptd]\nptd: /opt/ptd/ptd-linux-x86\nanalyzerCount: 1\n\n[analyzer1]\ndeviceType: 49\ninterfaceFlag: \ndevicePort: /dev/usbtmc0\nnetworkPort: 8888\n"
    );
    let (conf, findings) = lint(&text, None);
    assert_eq!(findings, []);
    let conf = conf.unwrap();
    assert_eq!(conf.render().unwrap(), text);
    assert_eq!(
        conf.analyzers[0].arguments("/tmp/log"),
        ["-l", "/tmp/log", "-p", "8888", "49", "/dev/usbtmc0"]
    );
    let multichannel = AnalyzerConf {
        device_type: 77,
        channel: vec![1, 2],
        gpib_board: Some(0),
        interface_flag: "-g".to_owned(),
        dc_flag: Some("-D".to_owned()),
        ..conf.analyzers[0].clone()
    };
    assert_eq!(
        multichannel.arguments("l").join(" "),
        "-l l -p 8888 -b 0 -c 1,2 -D -g 77 /dev/usbtmc0"
    );
}

#[test]
fn the_shipped_template_is_explained() {
    let text = "[server]\nntpServer: ntp\n[ptd]\nptd: D:\\PTD\\ptd-windows-x86.exe\ndeviceType: 49\ninterfaceFlag:\ndevicePort: COM1\n";
    let (conf, findings) = lint(text, None);
    assert_eq!(conf, None);
    let error = findings
        .iter()
        .find(|finding| finding.severity == ConfSeverity::Error)
        .unwrap();
    assert!(
        error.text.contains("deviceType") && error.text.contains("[analyzer1]"),
        "{error:?}"
    );
    assert!(error.hint.contains("[analyzer1]"), "{error:?}");
    let moved = findings
        .iter()
        .filter(|finding| finding.hint.contains("move it into [analyzer1]"));
    assert_eq!(
        moved.map(|finding| finding.line.unwrap()).collect::<Vec<_>>(),
        [5, 6, 7]
    );
}

#[test]
fn findings_name_their_line() {
    let good = wt310().render().unwrap();
    for (from, to, severity, part) in [
        (
            "ntpServer: ntp.example.com",
            "ntpServer:",
            ConfSeverity::Error,
            "ntpServer is empty",
        ),
        (
            "0.0.0.0 4950",
            "localhost 4950",
            ConfSeverity::Error,
            "not an address and port",
        ),
        (
            "0.0.0.0 4950",
            "127.0.0.1 4950",
            ConfSeverity::Warning,
            "loopback",
        ),
        (
            "0.0.0.0 4950",
            "0.0.0.0 8888",
            ConfSeverity::Error,
            "both use port 8888",
        ),
        (
            "[ptd]",
            "rangingMode: MAX\n[ptd]",
            ConfSeverity::Warning,
            "no effect",
        ),
        (
            "[ptd]",
            "rangingMode: auto\n[ptd]",
            ConfSeverity::Warning,
            "unknown",
        ),
        (
            "ptd-linux-x86\n",
            "ptd -v\n",
            ConfSeverity::Error,
            "with arguments",
        ),
        ("ptd: /opt", "ptd: 100%/opt", ConfSeverity::Error, "single `%`"),
        (
            "deviceType: 49",
            "deviceType: 77",
            ConfSeverity::Error,
            "two numbers",
        ),
        (
            "deviceType: 49",
            "deviceType: 549",
            ConfSeverity::Warning,
            "dcFlag",
        ),
        (
            "deviceType: 49",
            "deviceType: WT310",
            ConfSeverity::Error,
            "not an integer",
        ),
        (
            "deviceType: 49",
            "channel: 1,2\ndeviceType: 49",
            ConfSeverity::Error,
            "one channel",
        ),
        (
            "deviceType: 49",
            "deviceType: 49\nDEVICETYPE: 49",
            ConfSeverity::Error,
            "duplicate",
        ),
        (
            "interfaceFlag: ",
            "interfaceFlag: usb",
            ConfSeverity::Warning,
            "not an interface",
        ),
        (
            "[analyzer1]",
            "[analyser1]\n[analyzer1]",
            ConfSeverity::Warning,
            "ignored",
        ),
        (
            "networkPort",
            "netPort",
            ConfSeverity::Warning,
            "`netport` is ignored",
        ),
        ("[server]", "[server", ConfSeverity::Error, "before any"),
    ] {
        assert!(good.contains(from), "{from}");
        let (_, findings) = lint(&good.replace(from, to), None);
        let found = findings.iter().find(|finding| finding.text.contains(part));
        let found = found.unwrap_or_else(|| panic!("{to}: {findings:?}"));
        assert_eq!(found.severity, severity, "{to}");
    }
}

#[test]
fn two_analyzers_are_known_to_fail() {
    let mut conf = wt310();
    conf.analyzers.push(AnalyzerConf {
        network_port: 8889,
        ..conf.analyzers[0].clone()
    });
    let (read, findings) = lint(&conf.render().unwrap(), None);
    assert_eq!(read.unwrap().analyzers.len(), 2);
    assert!(
        findings
            .iter()
            .any(|finding| finding.text.contains("2 analyzers")),
        "{findings:?}"
    );
}

#[test]
fn rounds_know_their_meters() {
    let rounds = regatta_catalogue::known::rounds().unwrap();
    let rules = rounds.last().unwrap().power.as_ref();
    let mut conf = wt310();
    assert_eq!(lint(&conf.render().unwrap(), rules).1, []);
    for device in [0, 66] {
        conf.analyzers[0].device_type = device;
        let (_, findings) = lint(&conf.render().unwrap(), rules);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].hint.contains("49 YokogawaWT310"), "{findings:?}");
    }
}

#[test]
fn values_with_line_ends_are_not_written() {
    let mut conf = wt310();
    conf.ptd = "ptd\n[server]".to_owned();
    assert!(matches!(conf.render(), Err(ConfError::Value { key: "ptd", .. })));
}

proptest! {
    /// No text causes a panic.
    #[test]
    fn any_text_reads_or_is_refused(text in "([\\[\\]=:%()#;a-z0-9 ]|analyzer1|\n|server|ptd){0,60}") {
        let _ = lint(&text, None);
    }

    /// What is rendered reads back.
    #[test]
    fn any_configuration_reads_back(
        ntp in "[a-z0-9.%:=-]{1,20}",
        ptd in "[A-Za-z0-9/\\\\:%. -]{0,30}[a-z]",
        device in 0_i64..600,
        port in 1_u16..,
        dc in prop::option::of("-[A-Z]"),
    ) {
        let mut conf = ServerConf::new(&ntp, ptd.trim(), AnalyzerConf {
            device_type: device,
            device_port: "0".to_owned(),
            network_port: port,
            dc_flag: dc,
            channel: match device {
                48 => vec![2],
                device if crate::ptd::is_multichannel(device) => vec![1, 2],
                _ => vec![],
            },
            ..AnalyzerConf::default()
        });
        conf.ranging_mode = RangingMode::Max;
        prop_assert_eq!(ServerConf::read(&conf.render().unwrap()).unwrap(), conf);
    }
}

//! Tests of reading and writing `regatta.toml`.

use super::*;

#[test]
fn a_new_workspaces_file_reads() {
    let mut new = NewConfig {
        external: None,
        listen: "0.0.0.0:8883".parse().unwrap(),
        enroll_listen: "0.0.0.0:8884".parse().unwrap(),
        assets_listen: "0.0.0.0:8885".parse().unwrap(),
        host: "lab".to_owned(),
    };
    let config = Config::from_toml(&Config::template(&new)).unwrap();
    assert_eq!(config.broker, BrokerChoice::Embedded { listen: new.listen });
    assert!(config.tls);
    assert_eq!(config.broker_for_devices(None).to_string(), "mqtts://lab:8883");
    assert_eq!(config.assets_for_devices().as_deref(), Some("lab:8885"));
    new.external = Some("mqtts://127.0.0.1:8885".parse().unwrap());
    let config = Config::from_toml(&Config::template(&new)).unwrap();
    assert_eq!(config.broker_for_devices(None).to_string(), "mqtts://lab:8885");
}

#[test]
fn an_external_broker_is_configuration_alone() {
    let config = Config::from_toml("schema = 1\ntls = true\nbroker = \"mqtts://lab:1884\"").unwrap();
    let BrokerChoice::External(address) = config.broker else {
        panic!("not external")
    };
    assert_eq!(address.to_string(), "mqtts://lab:1884");
}

#[test]
fn plain_tcp_stays_on_loopback_unless_allowed() {
    let text = "schema = 1\nlisten = \"0.0.0.0:1883\"";
    assert!(matches!(Config::from_toml(text), Err(ConfigError::Exposed(_))));
    assert!(Config::from_toml(&format!("{text}\nplain_tcp_beyond_loopback = true")).is_ok());
    assert!(Config::from_toml(&format!("{text}\ntls = true")).is_ok());
    let text = "schema = 1\nbroker = \"mqtt://lab:1884\"";
    assert!(matches!(Config::from_toml(text), Err(ConfigError::InTheOpen(_))));
    assert!(Config::from_toml(&format!("{text}\nplain_tcp_beyond_loopback = true")).is_ok());
    let text = "schema = 1\nbroker = \"mqtts://lab:1884\"";
    assert!(matches!(
        Config::from_toml(text),
        Err(ConfigError::WithoutKeys(_))
    ));
}

#[test]
fn the_live_page_leaves_loopback_only_with_tls_and_login() {
    let page = |value: &str| Config::from_toml(&format!("schema = 1\n{value}")).map(|config| config.page);
    assert_eq!(page("").unwrap(), PageChoice::Default);
    assert_eq!(page("dashboard_listen = \"off\"").unwrap(), PageChoice::Off);
    let at = "[::1]:80".parse().unwrap();
    assert_eq!(
        page("dashboard_listen = \"[::1]:80\"").unwrap(),
        PageChoice::At(at)
    );
    for address in ["0.0.0.0:8886", "[::]:8886", "192.0.2.1:8886"] {
        let refused = page(&format!("dashboard_listen = \"{address}\"")).unwrap_err();
        assert!(matches!(refused, ConfigError::PageExposed(_)), "{refused}");
        assert!(
            refused.to_string().contains("ssh -L 8886:127.0.0.1:8886"),
            "{refused}"
        );
    }
    assert!(matches!(
        page("dashboard_login = true"),
        Err(ConfigError::LoginWithoutKeys)
    ));
    let login = |value: &str| {
        Config::from_toml(&format!("schema = 1\ntls = true\n{value}")).map(|config| config.page_login)
    };
    assert!(!login("").unwrap());
    assert!(login("dashboard_login = true").unwrap());
    assert!(login("dashboard_listen = \"192.0.2.1:8886\"").unwrap());
    assert!(login("dashboard_listen = \"0.0.0.0:8886\"\nhost = \"lab\"").unwrap());
    assert!(matches!(
        login("dashboard_listen = \"0.0.0.0:8886\""),
        Err(ConfigError::PageWithoutName(..))
    ));
    for word in ["on", "localhost:8886", "127.0.0.1"] {
        let refused = page(&format!("dashboard_listen = \"{word}\"")).unwrap_err();
        assert!(matches!(refused, ConfigError::Page(_)), "{refused}");
    }
}

#[test]
fn misspelt_keys_and_newer_files_are_refused() {
    assert!(matches!(
        Config::from_toml("schema = 1\nbrokr = \"x\""),
        Err(ConfigError::Toml(_))
    ));
    assert!(matches!(
        Config::from_toml("schema = 2"),
        Err(ConfigError::TooNew(2))
    ));
    assert!(matches!(
        Config::from_toml("schema = 1\nhost = \"a/b\""),
        Err(ConfigError::Host(_))
    ));
    assert!(matches!(
        Config::from_toml("schema = 1\nbroker = \"lab\""),
        Err(ConfigError::Broker(_))
    ));
}

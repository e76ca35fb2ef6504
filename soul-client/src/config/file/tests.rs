//! Files as people have them.

use super::{Format, parse};
use crate::{
    AdminsRule, Dialect,
    config::{ClientConfig, ClientConfigBuilder},
    error::Problem,
};

fn with(text: &str, format: Format) -> ClientConfigBuilder {
    let known = |name: &str| (name == "ADMIN").then(|| "http://from-env:9095".to_owned());
    ClientConfig::builder().over_file(parse(text, format, "application.yml", known))
}

fn yaml(text: &str) -> ClientConfig {
    with(text, Format::Yaml).build().unwrap_or_else(|error| panic!("{error}"))
}

fn problems(text: &str) -> Vec<String> {
    with(text, Format::Yaml).validate().iter().map(Problem::to_string).collect()
}

#[test]
fn soul_of_february_2021() {
    let config = yaml(
        "
server:
  port: 8188
soul:
  http:
    adminUrl: http://localhost:9095
    port: 8188
    contextPath: /http
    appName: http
    full: false
logging:
  level: {root: info}
",
    );
    assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://localhost:9095"]);
    assert_eq!((config.context_path(), config.app_name()), (Some("/http"), Some("http")));
    assert_eq!((config.port(), config.full(), config.dialect()), (Some(8188), false, Dialect::Any));
}

#[test]
fn soul_2_3_0() {
    let config = yaml(
        "
soul.client:
  registerType: http
  serverLists: http://one:9095,http://two:9095
  props:
    context-path: /http
    appName: http
    host: 10.0.0.2
    port: '8189'
    isFull: TRUE
",
    );
    assert_eq!(config.admin_urls().count(), 2);
    assert_eq!((config.host(), config.port(), config.full()), (Some("10.0.0.2"), Some(8189), true));
}

#[test]
fn shenyu_as_its_users_have_it() {
    let config = yaml(
        r#"
spring:
  application: {name: orders-app}
shenyu:
  namespace: n1;n2
  register:
    registerType: http
    serverLists: ${ADMIN},${OTHER:http://other:9095}
    props: {username: admin, password: "123456"}
  client:
    grpc:
      props: {contextPath: /grpc, whatever: 1}
    http:
      props:
        contextPath: orders
        port: 0
        host: 192.168.*
        protocol: https://
        addPrefixed: true
"#,
    );
    assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://from-env:9095", "http://other:9095"]);
    assert_eq!((config.context_path(), config.app_name()), (Some("/orders"), Some("orders-app")));
    assert_eq!((config.port(), config.host(), config.username()), (None, None, Some("admin")));
    assert_eq!(
        (config.protocol(), config.add_prefixed(), config.dialect()),
        ("https://", true, Dialect::Auto)
    );
    assert_eq!(config.namespaces(), ["n1", "n2"]);
    assert_eq!(config.admins_rule(), AdminsRule::Each);
    assert!(!format!("{config:?}").contains("123456"));
}

#[test]
fn toml_has_the_same_keys_and_ours() {
    let config = with(
        r#"
        [soul.http]
        adminUrl = "http://localhost:9095"
        contextPath = "/http"
        [soul.rust]
        dialect = "2.3.0"
        refresh_interval = 5
        requestTimeout = 0.5
        "#,
        Format::Toml,
    )
    .build()
    .unwrap();
    assert_eq!(config.dialect(), Dialect::V2_3_0);
    assert_eq!(config.refresh_interval().unwrap().as_secs(), 5);
    assert_eq!(config.request_timeout().as_millis(), 500);
}

#[test]
fn builder_over_environment_over_file() {
    let text = "soul: {http: {adminUrl: 'http://file', contextPath: /file, appName: file, port: 1}}";
    let vars = |name: &str| match name {
        "SOUL_CONTEXT_PATH" => Some("/env".to_owned()),
        "SOUL_APP_NAME" => Some("env".to_owned()),
        _ => None,
    };
    let config = with(text, Format::Yaml).vars(vars).app_name("own").build().unwrap();
    assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://file"]);
    assert_eq!((config.context_path(), config.app_name()), (Some("/env"), Some("own")));
    assert_eq!(config.port(), Some(1));
}

#[test]
fn mistakes_name_the_file_and_the_key() {
    let good = "soul: {http: {adminUrl: 'http://a', contextPath: /a";
    for (text, expected) in [
        (
            format!("{good}, contxtPath: /b}}}}"),
            "`file`: `soul.http.contxtPath` in `application.yml` is not known: did you mean `soul.http.contextPath`?",
        ),
        (
            format!("{good}, port: many}}}}"),
            "`port`: `soul.http.port` in `application.yml` is `many`, expected a number",
        ),
        (format!("{good}, full: yes please}}}}"), "expected `true` or `false`"),
        (format!("{good}, host: '${{NOBODY}}'}}}}"), "needs the variable `NOBODY`, which is not set"),
        (format!("{good}}}, client: {{registerType: zookeeper}}}}"), "over `http` only"),
        (format!("{good}}}, rust: {{dialect: shenyu-9}}}}"), "expected one of `auto`, `any`"),
        (format!("{good}}}, rust: {{requestTimeout: -1}}}}"), "expected seconds from 0 on"),
        ("soul: [".to_owned(), "is no YAML"),
    ] {
        let problems = problems(&text);
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{text}: {problems:?}");
    }
    let missing = ClientConfig::from_file("/no/such/application.yml").unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
    let strange = ClientConfig::from_file("/application.properties").unwrap_err();
    assert!(strange.to_string().contains("neither `.yml`"), "{strange}");
}

#[test]
fn text_that_cannot_be_read_is_not_repeated() {
    let yaml = "shenyu:\n  register:\n    props: {username: u, password: \"geheim\n  x: [";
    let toml = "[shenyu.register.props]\nusername = \"u\"\npassword = \"geheim\n";
    for (text, format, line) in [(yaml, Format::Yaml, "line"), (toml, Format::Toml, "line 3")] {
        let problems = with(text, format).validate();
        let told = problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n");
        assert!(told.contains(line) && told.contains("application.yml"), "{told}");
        assert!(!told.contains("geheim"), "{told}");
        #[cfg(feature = "call")]
        {
            let path = std::path::Path::new(if format == Format::Toml { "a.toml" } else { "a.yml" });
            let told = super::pairs(path, text).unwrap_err();
            assert!(told.contains(line) && told.contains(path.to_str().unwrap()), "{told}");
            assert!(!told.contains("geheim"), "{told}");
        }
    }
}

/// What is offered for a slip must be taken, so the list of known keys is held against the reader itself.
#[test]
fn every_key_that_is_offered_is_known() {
    for (section, words) in super::nearest::KNOWN {
        for word in words {
            let text = format!("{{\"{section}\": {{{word}: x}}}}");
            let problems = problems(&text);
            assert!(
                !problems.iter().any(|problem| problem.contains("is not known")),
                "{section}: {problems:?}"
            );
        }
    }
    assert!(problems("{soul.http: {zzz: x}}").iter().any(|problem| problem.ends_with("is not known")));
}

#[test]
fn file_is_found_by_its_name() {
    let folder = std::env::temp_dir().join(format!("soul-client-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (secret, path) = (folder.join("secret"), folder.join("application.yaml"));
    std::fs::write(&secret, "geheim\n").unwrap();
    let text = format!(
        "shenyu:\n  register:\n    serverLists: http://a\n    props: {{username: u, passwordFile: '{}'}}\n  client: {{http: {{props: {{contextPath: /a}}}}}}\n",
        secret.display()
    );
    std::fs::write(&path, text).unwrap();
    let config = ClientConfig::from_file(&path).unwrap();
    assert_eq!(config.credentials().unwrap().password.expose(), "geheim");
    std::fs::remove_dir_all(&folder).unwrap();
}

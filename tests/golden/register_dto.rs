//! `register_dto.json`: what a Java client of either version and kind sends, by HTTP or into ZooKeeper.

use serde::Deserialize;
use soul_client::plan::{
    Attributes, ClassDeclaration, ClassDeclarations, Dialect, PlanError, Properties, Registration,
    RegistrationPlan, zookeeper,
};
use soul_client::route::RpcType;
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
struct Case {
    version: String,
    client: String,
    transport: String,
    config: Config,
    local_ip: Option<String>,
    trigger: String,
    bean: Option<Bean>,
    posts: Option<Posts>,
    nodes: Option<Nodes>,
    exception: Option<String>,
    message: Option<String>,
    #[serde(default)]
    background_exceptions: Vec<String>,
}

/// The properties of every version and kind; each has its own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Config {
    admin_url: Option<String>,
    context_path: Option<String>,
    app_name: Option<String>,
    full: bool,
    host: Option<String>,
    port: Option<i32>,
    #[serde(rename = "spring.application.name")]
    application_name: Option<String>,
    #[serde(rename = "server.servlet.context-path")]
    servlet_context_path: Option<String>,
    register_type: Option<String>,
    server_lists: Option<String>,
    props: Option<Props>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Props {
    context_path: Option<String>,
    app_name: Option<String>,
    host: Option<String>,
    port: Option<String>,
    is_full: Option<String>,
}

#[derive(Deserialize)]
struct Bean {
    stereotypes: Vec<String>,
    class_annotation: Option<JavaAnnotation>,
    methods: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    annotation: Option<JavaAnnotation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JavaAnnotation {
    path: String,
    rule_name: String,
    desc: String,
    rpc_type: String,
    enabled: bool,
    #[serde(default)]
    register_meta_data: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Posts {
    Sent(Vec<Post>),
    Throws(String),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Post {
    url: String,
    body: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Nodes {
    Made(Vec<Node>),
    Throws(String),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    mode: String,
    path: String,
    data: Option<String>,
}

impl Case {
    fn dialect(&self) -> Dialect {
        match self.version.as_str() {
            "feb21" => Dialect::Feb2021,
            "2.3.0" => Dialect::V2_3_0,
            other => panic!("unknown version `{other}`"),
        }
    }

    fn properties(&self) -> Properties {
        let config = &self.config;
        let mut properties = Properties::new(self.dialect(), self.local_ip.clone().unwrap_or_default());
        properties.rpc_type = match self.client.as_str() {
            "springmvc" => RpcType::Http,
            "springcloud" => RpcType::SpringCloud,
            other => panic!("unknown client `{other}`"),
        };
        match &config.props {
            None => {
                properties.server_lists.clone_from(&config.admin_url);
                properties.context_path.clone_from(&config.context_path);
                properties.app_name.clone_from(&config.app_name);
                properties.host.clone_from(&config.host);
                properties.port = config.port.map(|port| port.to_string());
                properties.full = Some(config.full.to_string());
            }
            Some(props) => {
                properties.register_type.clone_from(&config.register_type);
                properties.server_lists.clone_from(&config.server_lists);
                properties.context_path.clone_from(&props.context_path);
                properties.app_name.clone_from(&props.app_name);
                properties.host.clone_from(&props.host);
                properties.port.clone_from(&props.port);
                properties.full.clone_from(&props.is_full);
                properties.servlet_context_path.clone_from(&config.servlet_context_path);
            }
        }
        if properties.rpc_type == RpcType::SpringCloud {
            properties.app_name.clone_from(&config.application_name);
        }
        properties
    }

    /// The bean as annotations; Spring looks at classes that are controllers only.
    fn classes(&self) -> ClassDeclarations {
        const CONTROLLERS: [&str; 3] = ["Controller", "RestController", "RequestMapping"];
        let Some(bean) = &self.bean else { return ClassDeclarations::default() };
        if !bean.stereotypes.iter().any(|name| CONTROLLERS.contains(&name.as_str())) {
            return ClassDeclarations::default();
        }
        let routes = bean.methods.iter().filter_map(|method| method.annotation.as_ref()).map(attributes);
        let class = bean.class_annotation.as_ref().map(attributes);
        ClassDeclarations(vec![ClassDeclaration::new(class, routes.collect())])
    }

    fn plan(&self) -> Result<RegistrationPlan, PlanError> {
        let properties = self.properties();
        match self.trigger.as_str() {
            "bean" => RegistrationPlan::annotated(&properties, &self.classes()),
            "context_refreshed" => RegistrationPlan::full(&properties),
            other => panic!("unknown trigger `{other}`"),
        }
    }

    fn throws(&self) -> bool {
        let word = match (&self.posts, &self.nodes) {
            (Some(Posts::Throws(word)), _) | (_, Some(Nodes::Throws(word))) => word,
            _ => return self.exception.is_some(),
        };
        assert_eq!(word, "throws");
        true
    }

    /// What is wrong with our outcome, if anything.
    fn failure(&self) -> Option<String> {
        match self.plan() {
            Err(error) => {
                let same = |theirs: &Option<String>, ours| theirs.is_none() || theirs.as_deref() == ours;
                let same = self.throws()
                    && same(&self.exception, error.java_exception())
                    && same(&self.message, error.java_message())
                    && self.message.as_ref().is_none_or(|message| error.to_string().contains(message));
                (!same).then(|| format!("threw {error:?}"))
            }
            Ok(plan) if self.throws() => Some(format!("did not throw: {:?}", posts(&plan))),
            Ok(plan) if self.transport == "zookeeper" => self.check_nodes(&plan),
            Ok(plan) => self.check_posts(&plan),
        }
    }

    fn check_posts(&self, plan: &RegistrationPlan) -> Option<String> {
        let ours = posts(plan);
        let Some(Posts::Sent(theirs)) = &self.posts else { return Some(format!("sent {ours:?}")) };
        let mut theirs = theirs.clone();
        theirs.sort();
        if theirs != ours {
            return Some(format!("sent {ours:?}"));
        }
        self.check_background(plan.failures())
    }

    fn check_nodes(&self, plan: &RegistrationPlan) -> Option<String> {
        let layout = zookeeper::layout(plan);
        let ours = layout.nodes.into_iter().map(|node| Node {
            mode: node.mode.as_str().to_owned(),
            path: node.path,
            data: node.data,
        });
        let mut ours: Vec<_> = ours.collect();
        ours.sort();
        let Some(Nodes::Made(theirs)) = &self.nodes else { return Some(format!("made {ours:?}")) };
        let mut theirs = theirs.clone();
        theirs.sort();
        if theirs != ours {
            return Some(format!("made {ours:?}"));
        }
        self.check_background(&layout.failures)
    }

    fn check_background(&self, failures: &[PlanError]) -> Option<String> {
        let ours: Vec<_> = failures.iter().filter_map(PlanError::java_exception).collect();
        (ours != self.background_exceptions).then(|| format!("threw in the background: {failures:?}"))
    }
}

fn attributes(annotation: &JavaAnnotation) -> Attributes {
    let mut attributes = Attributes::new(annotation.path.clone());
    attributes.rule_name = annotation.rule_name.clone().into();
    attributes.desc = annotation.desc.clone().into();
    attributes.rpc_type = Some(annotation.rpc_type.clone().into());
    attributes.enabled = annotation.enabled;
    attributes.register_meta_data = annotation.register_meta_data;
    attributes
}

/// Everything a Java client would send, which does not leave repeats out, to the first admin.
fn posts(plan: &RegistrationPlan) -> Vec<Post> {
    let server = plan.servers().first().map(String::as_str).unwrap_or_default();
    let post = |registration: &Registration| Post {
        url: format!("{server}{}", registration.endpoint().unwrap_or("null")),
        body: registration.body().to_owned(),
    };
    let mut posts: Vec<_> = plan.registrations().iter().map(post).collect();
    posts.extend(plan.repeats().iter().map(|repeat| post(repeat.again())));
    posts.sort();
    posts
}

#[test]
fn bodies_are_those_of_the_java_clients() {
    let cases: Vec<Case> = load("register_dto");
    let mut failures = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        if let Some(failure) = case.failure() {
            let expected = match (&case.posts, &case.nodes, &case.exception) {
                (_, _, Some(exception)) => format!("{exception} {:?}", case.message),
                (Some(posts), ..) => format!("{posts:?}"),
                (_, nodes, _) => format!("{nodes:?} {:?}", case.background_exceptions),
            };
            let Case { version, client, transport, trigger, .. } = case;
            failures.push(format!(
                "case {index} ({version} {client} {transport} {trigger}): {failure}\n    expected {expected}"
            ));
        }
    }
    assert_none("register_dto", cases.len(), &failures);
}

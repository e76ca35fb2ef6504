//! What an admin has.

use std::collections::{BTreeMap, BTreeSet};

/// Routes by namespace and rule name, instances by namespace and context path.
#[derive(Debug, Default)]
pub(super) struct Book {
    routes: BTreeMap<(String, String), String>,
    selectors: BTreeSet<(String, String)>,
    instances: BTreeSet<(String, String, String)>,
}

/// Whose: namespace (empty with Soul) and context path.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) context_path: String,
}

impl Book {
    /// The first path of a rule name stays.
    pub(super) fn route(&mut self, owner: &Owner, rule_name: &str, path: &str) {
        self.selectors.insert((owner.namespace.clone(), owner.context_path.clone()));
        self.routes.entry((owner.namespace.clone(), rule_name.to_owned())).or_insert_with(|| path.to_owned());
    }

    /// Without a selector an instance has no place; an admin tries again later, this one does not.
    pub(super) fn instance(&mut self, owner: &Owner, address: &str) {
        if self.selectors.contains(&(owner.namespace.clone(), owner.context_path.clone())) {
            self.instances.insert((owner.namespace.clone(), owner.context_path.clone(), address.to_owned()));
        }
    }

    pub(super) fn gone(&mut self, owner: &Owner, address: &str) {
        self.instances.remove(&(owner.namespace.clone(), owner.context_path.clone(), address.to_owned()));
    }

    pub(super) fn routes(&self) -> Vec<String> {
        let mut routes: Vec<_> = self.routes.values().cloned().collect();
        routes.sort();
        routes
    }

    pub(super) fn instances(&self) -> Vec<String> {
        let mut instances: Vec<_> = self.instances.iter().map(|(_, _, address)| address.clone()).collect();
        instances.sort();
        instances
    }
}

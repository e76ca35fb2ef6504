//! The first step: metadata.

use soul_client::wire::soul::{DataEventType, MetaData};

use super::Planner;
use crate::admin::register::{Effect, MetaDataEffect, MetaDataRow};

impl Planner<'_> {
    /// SpringMVC: once a path, never updated.
    pub(super) fn path_meta_data(&mut self) {
        if self.by_path().is_some() {
            return;
        }
        let data = MetaData { path: self.body.path.clone(), ..self.common_meta_data() };
        self.create_meta_data(data, self.body.path_desc.clone());
    }

    /// SpringCloud: once a context.
    pub(super) fn context_meta_data(&mut self) {
        let path = format!("{}/**", self.body.context_path.as_deref().unwrap_or("null"));
        if self.stored.meta_data_by_path(&path).is_some() {
            return;
        }
        let app_name = self.body.app_name.as_deref();
        let data = MetaData {
            path: Some(path),
            service_name: self.body.app_name.clone(),
            method_name: self.body.context_path.clone(),
            ..self.common_meta_data()
        };
        self.create_meta_data(
            data,
            Some(format!("{}spring cloud meta data info", app_name.unwrap_or("null"))),
        );
    }

    /// Dubbo, sofa, tars, grpc, and every kind of ShenYu: inserted or updated every time; says whether the row was there.
    pub(super) fn rpc_meta_data(&mut self, known: Option<MetaDataRow>) -> bool {
        let body = self.body;
        let mut data = MetaData {
            path: body.path.clone(),
            service_name: body.service_name.clone(),
            method_name: body.method_name.clone(),
            parameter_types: body.parameter_types.clone(),
            rpc_ext: body.rpc_ext.clone(),
            ..self.common_meta_data()
        };
        // Gateways are told what the request said: with the context path, which no row keeps, and without an id.
        let sent = MetaData { context_path: body.context_path.clone(), ..data.clone() };
        let kind = if known.is_some() { DataEventType::Update } else { DataEventType::Create };
        match &known {
            Some(row) => {
                data.id = row.data.id.clone();
                data.enabled = row.data.enabled; // the update statement leaves it alone
            }
            None => data.id = Some((self.ids)()),
        }
        let row = MetaDataRow { data, path_desc: body.path_desc.clone() };
        if known.as_ref() != Some(&row) {
            self.effects.push(Effect::MetaData(Box::new(MetaDataEffect { row, sent, kind })));
        }
        known.is_some()
    }

    fn common_meta_data(&self) -> MetaData {
        MetaData {
            app_name: self.body.app_name.clone(),
            rpc_type: self.body.rpc_type.clone(),
            enabled: Some(self.body.enabled),
            ..MetaData::default()
        }
    }

    fn create_meta_data(&mut self, data: MetaData, path_desc: Option<String>) {
        let data = MetaData { id: Some((self.ids)()), ..data };
        let sent = data.clone();
        let row = MetaDataRow { data, path_desc };
        let kind = DataEventType::Create;
        self.effects.push(Effect::MetaData(Box::new(MetaDataEffect { row, sent, kind })));
    }

    pub(super) fn by_path(&self) -> Option<MetaDataRow> {
        self.stored.meta_data_by_path(self.body.path.as_deref()?)
    }

    pub(super) fn by_method(&self) -> Option<MetaDataRow> {
        self.stored.meta_data_by_method(self.body.service_name.as_deref(), self.body.method_name.as_deref())
    }

    pub(super) fn path_taken(&self) -> bool {
        self.by_path().is_some_and(|row| {
            row.data.service_name != self.body.service_name || row.data.method_name != self.body.method_name
        })
    }
}

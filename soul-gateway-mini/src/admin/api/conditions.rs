//! Conditions as an operator writes them.

use soul_client::wire::soul::ConditionData;

use super::fields::Fields;
use crate::admin::problem::Problem;

/// Param types that look at something of a name.
const NAMED: [&str; 3] = ["query", "header", "post"];
/// What stands for the name where there is none, by Soul's custom.
const NO_NAME: &str = "/";

/// Reads the list of conditions, and compiles each to see whether a gateway could.
pub(super) fn read(fields: &mut Fields) -> Option<Vec<ConditionData>> {
    fields.objects("conditions", |item| {
        let param_type = item.text("paramType");
        let operator = item.text("operator");
        let param_name = item.text("paramName");
        let param_value = item.text("paramValue");
        let param_type = item.need("paramType", param_type)?;
        let operator = item.need("operator", operator)?;
        let param_value = item.need("paramValue", param_value)?;
        let named = NAMED.contains(&param_type.as_str());
        let param_name =
            if named { item.need("paramName", param_name)? } else { param_name.unwrap_or(NO_NAME.into()) };
        let condition = ConditionData {
            param_type: Some(param_type),
            operator: Some(operator),
            param_name: Some(param_name),
            param_value: Some(param_value),
        };
        if let Some(problem) = Problem::of_condition(&condition) {
            item.refuse(problem);
        }
        Some(condition)
    })
}

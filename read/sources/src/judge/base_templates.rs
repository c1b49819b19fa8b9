//! Base classes that a template makes for the class that derives from them.

use super::Judge;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl Judge<'_> {
    /// `struct t : stored<t>`, where a method of the template `stored` looks at the bytes of its parameter.
    pub(super) fn base_templates(&mut self) {
        self.methods_of_bytes();
        let facts = self.facts;
        let templates: BTreeSet<&str> =
            facts.byte_templates.iter().filter_map(|method| class_of_method(method)).collect();
        if templates.is_empty() {
            return;
        }
        for (usr, record) in &facts.records {
            let names_itself = |base: &str| {
                let own = usr.strip_prefix("c:").unwrap_or(usr);
                let (class, arguments) = base.split_once(">#")?;
                let class = class.rsplit('@').next()?;
                (arguments.contains(own) && templates.contains(class)).then(|| class.to_owned())
            };
            if let Some(class) = record.bases.iter().find_map(|base| names_itself(base)) {
                let reason = format!("its base class is made by the template {class}, which looks at bytes");
                self.find(usr, Verdict::Refuse, UseKind::Bytes, &record.at, reason);
            }
        }
    }

    /// `table.load(bytes)`, where `table` is a `table<t>` and the method copies bytes into its elements.
    fn methods_of_bytes(&mut self) {
        let facts = self.facts;
        for (template, name, class, at) in &facts.method_calls {
            let Some((_, arguments)) =
                class.split_once('>').filter(|_| facts.byte_methods.contains(template))
            else {
                continue;
            };
            let named = arguments.split('#').filter_map(|argument| argument.split_once('$'));
            for (_, record) in named {
                let record: Name = format!("c:{record}").into();
                if facts.records.contains_key(&record) {
                    let reason =
                        format!("{name}() of a class template that is made for it looks at its bytes");
                    self.find(&record, Verdict::Refuse, UseKind::Bytes, at, reason);
                }
            }
        }
    }
}

/// The class template in libclang's name of its method.
fn class_of_method(method: &str) -> Option<&str> {
    let (class, _) = method.split_once("@F@").filter(|(class, _)| class.contains("@ST>"))?;
    class.rsplit('@').next()
}

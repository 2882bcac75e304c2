//! The setup panel: where a mechanism comes from.

use braid_app::form::KINDS;
use egui::Theme;
use egui_kittest::kittest::{NodeT, Queryable};

use super::harness::{answer_checks, desk, devices};

/// The picture of each mechanism, its equations, its paper as a link, and where we had to choose.
#[test]
fn every_mechanism_says_where_it_comes_from() {
    for kind in KINDS {
        let mut harness = desk([1400.0, 1800.0], Theme::Dark, vec![devices()]);
        let edits = &mut harness.state_mut().window.view.draft.edits;
        edits.set("residual.kind", kind.kind.into());
        harness.run_steps(4);
        answer_checks(&mut harness);
        harness.get_by_label("Equations and sources").click();
        harness.run_steps(16);
        let heard = &harness.state().window.heard;
        let checked = heard
            .checked
            .as_ref()
            .and_then(|checked| checked.derived.as_ref());
        let about = checked.expect("a configuration that can run").about.clone();
        harness.get_by_label(&about.equations);
        harness.get_by_label("Where we had to choose");
        for choice in &about.choices {
            harness.get_by_label(&format!("· {choice}"));
        }
        let nodes = harness.root().children_recursive();
        let links: Vec<String> = nodes
            .map(|node| node.accesskit_node())
            .filter(|node| node.role() == egui::accesskit::Role::Link)
            .filter_map(|node| node.label())
            .collect();
        if about.paper.is_empty() {
            harness.get_by_label("No paper is followed here.");
            assert!(links.is_empty(), "{}: {links:?}", kind.kind);
        } else {
            let [link] = &links[..] else {
                panic!("{}: {links:?}", kind.kind);
            };
            assert!(
                about.paper.contains(link),
                "{link} is not of {}",
                about.paper
            );
        }
        let nodes = harness.root().children_recursive();
        let mut pictures = nodes
            .map(|node| node.accesskit_node())
            .filter(|node| node.role() == egui::accesskit::Role::Image);
        assert!(
            pictures.any(|node| node
                .label()
                .is_some_and(|words| words.contains("ayer") || words.contains("tream"))),
            "{}: no picture of streams and sublayers",
            kind.kind
        );
    }
}

#[test]
fn a_click_on_a_paper_opens_it() {
    let mut harness = desk([1400.0, 1800.0], Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness.get_by_label("Equations and sources").click();
    harness.run_steps(16);
    harness.get_by_label("arXiv 2607.18730").click_accesskit();
    let mut opened = None;
    for _ in 0..6 {
        harness.step();
        let commands = &harness.output().platform_output.commands;
        opened = opened.or(commands.iter().find_map(|command| match command {
            egui::OutputCommand::OpenUrl(open) => Some(open.url.clone()),
            _ => None,
        }));
    }
    assert_eq!(opened.as_deref(), Some("https://arxiv.org/abs/2607.18730"));
}

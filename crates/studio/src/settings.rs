//! The settings panel.

use maud::{Markup, html};
use retake_agent::provider::config::ProviderEnvironment;
use retake_model::id::ThreadId;
use retake_model::settings::{Effort, Settings};
use retake_model::take::{FileItem, Take};
use retake_render::number::counted;
use retake_timeline::{ContextPreset, read_blob};

use crate::conversation::take_of;
use crate::draw::with_visible_controls;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// Maximum characters of a sent text.
const MAX_SENT_CHARS: usize = 40_000;

/// Settings, prompts, roles and context files. Changes are saved at once and can be undone.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let state = reader.state(thread)?;
    let (settings, take) = (reader.settings(thread).effective_in(&state)?, take_of(&reader, thread, query)?);
    let row = reader.thread(thread)?;
    Ok(html! {
        form id="settings" data-live="settings" autocomplete="off" {
            fieldset {
                legend { "Thread" }
                label { "Title" input name="title" value=(row.summary.title); }
                label class="check" {
                    input type="checkbox" checked[row.summary.private] name="private";
                    "Private: never sent to a remote"
                }
                label class="check" {
                    input type="checkbox" checked[row.summary.pinned] name="pinned";
                    "Pinned to the top"
                }
                label {
                    "Roles of the project, in order"
                    input name="roles" value=(reader.settings(thread).roles()?.join(", ")) data-list=",";
                }
                label {
                    "Tags"
                    input name="tags" value=(row.summary.tags.join(", ")) data-list=",";
                }
            }
            (model(studio, &settings))
            (prompts(&settings))
            (lists(&take))
            (presets(thread, &take, &reader.settings(thread).presets()?))
            @if take.sent.is_some() {
                details class="sent" data-src=(format!("/studio/threads/{thread}/sent?take={}", take.id)) { summary { "Last prompt sent to the model" } }
            }
        }
    })
}

/// The system prompt and the context files of a take's last request.
pub(crate) fn sent(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let take = take_of(&reader, thread, query)?;
    let sent = take.sent.ok_or_else(|| PageError::not_found("No prompt was sent from this take yet."))?;
    let text = |blob| -> Result<String, PageError> {
        let text = String::from_utf8_lossy(&read_blob(&reader, blob)?).into_owned();
        let cut = text.char_indices().nth(MAX_SENT_CHARS).map(|(at, _)| at);
        Ok(cut.map_or(text.clone(), |at| format!("{}\n…", &text[..at])))
    };
    let parts = [("System prompt", text(sent.system_prompt)?), ("Context files", text(sent.markdown)?)];
    Ok(html! {
        div {
            @for (name, text) in &parts {
                h3 { (name) }
                pre class="plain" tabindex="0" { @if text.is_empty() { "None." } @else { (with_visible_controls(text)) } }
            }
        }
    })
}

fn model(studio: &Studio, settings: &Settings) -> Markup {
    let usual = studio.setup.default_model(&ProviderEnvironment::from_process());
    let models = studio.setup.models_of(settings.provider.as_deref().unwrap_or(&usual.provider));
    let number = |name: &str, label: &str, value: String, step: &str| {
        html! {
            label { (label) input type="number" step=(step) value=(value) name=(name); }
        }
    };
    html! {
        fieldset {
            legend { "Model" }
            label {
                "Provider"
                input value=(settings.provider.as_deref().unwrap_or_default()) placeholder=(usual.provider) name="provider" list="providers";
                datalist id="providers" { @for provider in studio.setup.providers() { option value=(provider) {} } }
            }
            label {
                "Model"
                input value=(settings.model.as_deref().unwrap_or_default()) placeholder=(usual.model.unwrap_or_default()) name="model" list="models";
                datalist id="models" { @for model in &models { option value=(model) {} } }
            }
            label {
                "Effort"
                input value=(settings.get("effort").unwrap_or_default()) placeholder="default" name="effort" list="efforts";
                datalist id="efforts" { @for effort in Effort::ALL { option value=(effort.name()) {} } }
            }
            (number("temperature", "Temperature", settings.get("temperature").unwrap_or_default(), "0.1"))
            (number("top_p", "Top p", settings.get("top_p").unwrap_or_default(), "0.05"))
            (number("max_tokens", "Max output tokens", settings.get("max_tokens").unwrap_or_default(), "1"))
            label class="check" {
                input type="checkbox" checked[settings.auto_add_history] name="auto_add_history";
                "Add file changes between turns to the conversation"
            }
        }
    }
}

fn prompts(settings: &Settings) -> Markup {
    let prompt = |name: &str, label: &str, value: &str| {
        html! { label { (label) textarea rows="3" name=(name) { (value) } } }
    };
    html! {
        fieldset {
            legend { "Prompts" }
            (prompt("project_system_prompt", "Project prompt", &settings.project_system_prompt))
            (prompt("global_system_prompt", "Global prompt", &settings.global_system_prompt))
            label class="check" {
                input type="checkbox" checked[settings.use_default_base_prompt] name="use_default_base_prompt";
                "Use the built-in base prompt"
            }
            (prompt("base_system_prompt", "Custom base prompt", &settings.base_system_prompt))
        }
    }
}

/// The context presets of the project.
fn presets(thread: ThreadId, take: &Take, presets: &[ContextPreset]) -> Markup {
    let of = |rest: &str| format!("/v1/threads/{thread}/presets{rest}");
    let save = format!("/studio/threads/{thread}/dialog?take={}&about=save-preset", take.id);
    html! {
        fieldset id="presets" {
            legend { "Context presets of the project" }
            @for preset in presets {
                p {
                    button type="button" data-act="ask" data-about="load-preset" data-method="POST" data-ask=(of(&format!("/load?take={}", take.id)))
                        data-body=(serde_json::json!({"name": preset.name})) title="Load this preset" { (preset.name) }
                    " " span class="quiet" { (counted(preset.items.len() as u64, "file", "files")) } " "
                    button type="button" data-act="ask" data-about="delete-preset" data-method="DELETE"
                        data-ask=(of(&format!("/{}", encoded(&preset.name)))) title="Delete this preset" { "Delete" }
                }
            }
            button type="button" data-act="dialog" data-about="save-preset" data-src=(save) { "Save these context files…" }
        }
    }
}

/// Percent-encodes a name as a path segment.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

fn lists(take: &Take) -> Markup {
    let list = |name: &str, label: &str, items: &[FileItem]| {
        let text = items.iter().map(|item| item.path.as_str()).collect::<Vec<_>>().join("\n");
        html! {
            label {
                (label)
                textarea rows="3" placeholder="one path per line" name=(name) data-list="\n" { (text) }
            }
        }
    };
    html! {
        fieldset {
            legend { "Context" }
            (list("context_files", "Files sent with the next request", &take.context_files))
            (list("screenshots", "Pictures sent with the next request", &take.screenshots))
            (list("files", "Files of this take", &take.files))
        }
    }
}

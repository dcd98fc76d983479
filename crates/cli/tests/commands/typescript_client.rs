//! The TypeScript client, generated from this server's document and tested against it with Node.

use std::path::Path;
use std::process::Command;

use crate::serve::Serving;
use crate::support::Sandbox;

#[test]
fn the_typescript_client_works_with_this_server() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "127.0.0.1:0");
    let url = serving.address["url"].as_str().expect("an address").to_owned();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/typescript-client");
    let folder = sandbox.project().with_file_name("client");
    let token = sandbox.done(&["serve", "token"]).trim().to_owned();
    let run = |program: &str, arguments: &[&str], place: &Path| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(place)
            .envs([("RETAKE_URL", url.as_str()), ("RETAKE_TOKEN", token.as_str())])
            .env("RETAKE_PROJECT", sandbox.project())
            .output()
            .expect("./check installs Python and Node");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {text}");
        text
    };
    let (script, output) = (script.display().to_string(), folder.display().to_string());
    run("python3", &[&script, "--url", &url, "--output", &output], &sandbox.project());
    let report = run("node", &["--test", "--test-reporter=tap"], &folder);
    assert!(report.contains("# pass 6") && report.contains("# fail 0"), "{report}");
    let declarations = std::fs::read_to_string(folder.join("src/api.d.ts")).expect("it was generated");
    for part in
        ["export interface ComparedTakes ", "postThreadUndo(thread: string", "ifMatch?: number | string"]
    {
        assert!(declarations.contains(part), "{part}");
    }
}

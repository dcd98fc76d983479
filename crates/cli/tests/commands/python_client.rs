//! The Python client, generated from this server's document and tested against it.

use std::path::Path;
use std::process::{Command, Output};

use crate::serve::Serving;
use crate::support::Sandbox;

fn python(sandbox: &Sandbox, url: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new("python3")
        .args(arguments)
        .current_dir(folder)
        .env("RETAKE_URL", url)
        .env("RETAKE_TOKEN", sandbox.done(&["serve", "token"]).trim())
        .env("RETAKE_PROJECT", sandbox.project())
        .env("PYTHONPATH", folder.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("./check installs Python")
}

#[test]
fn the_python_client_works_with_this_server() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "127.0.0.1:0");
    let url = serving.address["url"].as_str().expect("an address").to_owned();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-client");
    let folder = sandbox.project().with_file_name("client");
    let run = |arguments: &[&str], folder: &Path| {
        let output = python(&sandbox, &url, folder, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        error
    };
    let (script, output) = (script.display().to_string(), folder.display().to_string());
    run(&[&script, "--url", &url, "--output", &output], &sandbox.project());
    let report = run(&["-W", "error", "-m", "unittest", "discover", "-s", "tests"], &folder);
    let ran = report.split("Ran ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran >= 9), "{report}");
    for file in ["pyproject.toml", "README.md", "src/retake_client/py.typed", "src/retake_client/api.py"] {
        assert!(folder.join(file).is_file(), "{file} is part of the package");
    }
}

#[test]
fn the_python_package_builds_by_itself() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = sandbox.project().with_file_name("repository");
    for folder in ["scripts", "clients/python"] {
        std::fs::create_dir_all(copy.join(folder)).expect("our folder");
    }
    let copied = Command::new("cp")
        .arg("-r")
        .arg(root.join("clients/python"))
        .arg(copy.join("clients"))
        .status()
        .is_ok_and(|status| status.success());
    assert!(
        copied
            && std::fs::copy(root.join("scripts/python-client"), copy.join("scripts/python-client")).is_ok()
    );
    let output = Command::new("python3")
        .args(["-B", "-c", "import build_backend; build_backend.generate()"])
        .current_dir(copy.join("clients/python"))
        .env("RETAKE_PROGRAM", env!("CARGO_BIN_EXE_retake"))
        .output()
        .expect("./check installs Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let module = copy.join("clients/python/src/retake_client/api.py");
    let module = std::fs::read_to_string(module).expect("it was generated");
    assert!(
        module.contains("class Api(Transport)") && module.contains("def get_thread_compare("),
        "no methods"
    );
}

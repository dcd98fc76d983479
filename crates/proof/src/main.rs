//! `proof`: the campaigns that try to break Retake's promises, by command and at any size.

fn main() {
    let options = retake_proof::model::Options {
        seed: std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1),
        steps: std::env::args().nth(2).and_then(|t| t.parse().ok()).unwrap_or(2000),
        mutant: None,
    };
    let start = std::time::Instant::now();
    println!("{:?} {:?}", retake_proof::model::run(options), start.elapsed());
}

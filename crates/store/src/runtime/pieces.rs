//! Stores bodies as deduplicated pieces.
//!
//! Each request repeats the conversation so far, so the requests of a turn are nearly identical. A body is cut at the
//! items of its lists, so that items of earlier requests are stored once. Concatenating the pieces gives the body
//! back byte for byte.

/// Pieces are at least this long, so that a list of numbers is not cut into tiny pieces.
const MIN_PIECE: usize = 64;

/// Cuts a JSON text after the items of the lists in its outermost object. Any other text stays in one piece.
pub(super) fn cut(text: &str) -> Vec<&str> {
    let mut cuts = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (place, byte) in text.bytes().enumerate() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            // Between two items of a list in the outermost object.
            b',' if depth == 2 => cuts.push(place + 1),
            _ => {}
        }
    }
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts {
        if cut - from >= MIN_PIECE {
            pieces.push(&text[from..cut]);
            from = cut;
        }
    }
    if from < text.len() {
        pieces.push(&text[from..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_concatenate_to_the_original() {
        let long = "x".repeat(200);
        let check = |text: &str, pieces: usize| {
            let cut = cut(text);
            assert_eq!(cut.concat(), text);
            assert_eq!(cut.len(), pieces, "{text}");
        };
        check("", 0);
        check("no JSON", 1);
        check(r#"{"a":[1,2,3],"b":",[{"}"#, 1);
        check(&format!(r#"{{"m":[{{"t":"{long}, \" ["}},{{"t":["{long}",2]}},3],"z":1}}"#), 3);
        check(&format!(r#"{{"é":["{long}é","é"]}}"#), 2);
        check(r#"{"broken":["#, 1);
    }

    #[test]
    fn a_longer_conversation_shares_the_pieces_of_the_shorter() {
        let message =
            |number: usize| format!(r#"{{"role":"user","text":"{}"}}"#, number.to_string().repeat(90));
        let body = |count: usize| {
            let messages: Vec<String> = (0..count).map(message).collect();
            format!(r#"{{"messages":[{}],"model":"m"}}"#, messages.join(","))
        };
        let (short, long) = (body(5), body(6));
        let shared = cut(&short).iter().filter(|piece| cut(&long).contains(piece)).count();
        assert_eq!(shared, 4);
    }
}

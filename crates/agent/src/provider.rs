//! Who answers: the wires of the providers, and the one that needs none.
